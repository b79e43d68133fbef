// SPDX-License-Identifier: Apache-2.0
// Node's fetch against the demo server: node fetch.mjs BASE_URL

import assert from 'node:assert/strict';

const base = process.argv[2];

// JSON, and headers of every answer.
let r = await fetch(`${base}/hello`, { headers: { 'X-Request-ID': 'from-node' } });
assert.equal(r.status, 200);
assert.deepEqual(await r.json(), { hello: 'world' });
assert.equal(r.headers.get('x-request-id'), 'from-node');

// Errors in our shape.
r = await fetch(`${base}/greet`, { method: 'POST', body: '{"name":1}' });
assert.equal(r.status, 400);
assert.equal((await r.json()).message, 'name: must be a string');

// A sized body there and back.
const big = new Uint8Array(5_000_000).map((_, i) => i * 31);
r = await fetch(`${base}/echo-stream`, { method: 'PUT', body: big });
assert.deepEqual(new Uint8Array(await r.arrayBuffer()), big);

// A streamed (chunked) body.
const stream = new ReadableStream({
  start(c) {
    for (let i = 0; i < 100; i++) c.enqueue(new TextEncoder().encode(`part ${i}\n`));
    c.close();
  },
});
r = await fetch(`${base}/echo-stream`, { method: 'POST', body: stream, duplex: 'half' });
assert.equal((await r.text()).split('\n').length, 101);

// A form with a file.
const form = new FormData();
form.set('metadata', '{"path":"/tmp/ü"}');
form.set('file', new Blob([big]), 'ü "x".bin');
r = await fetch(`${base}/upload`, { method: 'POST', body: form });
const parts = await r.json();
assert.deepEqual(parts.map((p) => [p.name, p.filename, p.size]),
  [['metadata', undefined, 18], ['file', 'ü "x".bin', big.length]]);

// An event stream, read a little and given up.
const stop = new AbortController();
r = await fetch(`${base}/events`, { signal: stop.signal });
assert.equal(r.headers.get('content-type'), 'text/event-stream');
const reader = r.body.getReader();
const { value } = await reader.read();
assert.ok(new TextDecoder().decode(value).startsWith('data: xxxxx\n\n'));
stop.abort();
await assert.rejects(reader.read());

// Many at once, on kept connections.
const all = await Promise.all(Array.from({ length: 200 }, () => fetch(`${base}/hello`)));
for (const a of all) assert.equal((await a.json()).hello, 'world');

// No body where there is none.
r = await fetch(`${base}/hello`, { method: 'HEAD' });
assert.equal(r.headers.get('content-length'), '17');
assert.equal(await r.text(), '');

console.log(`fetch: ok with Node ${process.version}`);
process.exit(0);
