// SPDX-License-Identifier: Apache-2.0
// npm's ws against the demo server: node ws.cjs WS_BASE_URL

const assert = require('node:assert/strict');
const { once } = require('node:events');
const WebSocket = require('ws');

const url = `${process.argv[2]}/ws`;

async function open(options, protocols) {
  const ws = new WebSocket(url, protocols, { perMessageDeflate: false, ...options });
  await once(ws, 'open');
  return ws;
}

async function echo(ws, message) {
  ws.send(message);
  const [data, isBinary] = await once(ws, 'message');
  return isBinary ? data : data.toString();
}

async function main() {
  let ws = await open();
  assert.equal(await echo(ws, 'hello'), 'hello');
  assert.equal(await echo(ws, ''), '');
  assert.equal(await echo(ws, 'ünï ☃ 🎩'), 'ünï ☃ 🎩');
  const bytes = Buffer.alloc(200_000, 7);
  assert.deepEqual(await echo(ws, bytes), bytes);

  // Fragments become one message.
  ws.send('one ', { fin: false });
  ws.send('two ', { fin: false });
  ws.send('three', { fin: true });
  assert.equal((await once(ws, 'message'))[0].toString(), 'one two three');

  // A ping inside a fragmented message.
  ws.send('a', { fin: false });
  ws.ping('are you there');
  assert.equal((await once(ws, 'pong'))[0].toString(), 'are you there');
  ws.send('b', { fin: true });
  assert.equal((await once(ws, 'message'))[0].toString(), 'ab');

  // Many messages before any answer is read.
  const heard = [];
  const all = new Promise((resolve) => {
    ws.on('message', (data) => heard.push(data.toString()) === 1000 && resolve());
  });
  for (let i = 0; i < 1000; i++) ws.send(`n${i}`);
  await all;
  heard.forEach((text, i) => assert.equal(text, `n${i}`));

  // We close.
  ws.close(1000, 'done');
  assert.equal((await once(ws, 'close'))[0], 1000);

  // The server closes, with a code of its own.
  ws = await open();
  ws.send('close 4000');
  let [code, reason] = await once(ws, 'close');
  assert.equal(code, 4000);
  assert.equal(reason.toString(), 'as requested');

  // Too large a message.
  ws = await open();
  ws.on('error', () => {});
  ws.send(Buffer.alloc(1 << 20));
  [code] = await once(ws, 'close');
  assert.ok(code === 1009 || code === 1006, `closed with ${code}`);

  // A subprotocol is chosen; compression is offered by the client and declined.
  ws = await open({ perMessageDeflate: true }, ['other', 'echo']);
  assert.equal(ws.protocol, 'echo');
  assert.equal(ws.extensions, '');
  assert.equal(await echo(ws, 'plain'), 'plain');
  ws.terminate();

  // Not a WebSocket route: the answer is an ordinary one.
  const bad = new WebSocket(url.replace(/ws$/, 'hello'));
  const [, response] = await once(bad, 'unexpected-response');
  assert.equal(response.statusCode, 200);
  bad.on('error', () => {});
  bad.terminate();

  console.log(`ws: ok with ws ${require('ws/package.json').version}, Node ${process.version}`);
}

main().then(() => process.exit(0), (e) => { console.error(e); process.exit(1); });
