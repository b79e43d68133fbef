// SPDX-License-Identifier: Apache-2.0
// The official JavaScript SDK: node scenario.mjs SDK
//
// SDK is the directory of the installed package. The server is named by OPEN_SANDBOX_DOMAIN, a key by
// OPEN_SANDBOX_API_KEY, as the SDK reads them. Speaks TAP, a point for each check.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const [sdkFolder] = process.argv.slice(2);
const { version } = JSON.parse(readFileSync(`${sdkFolder}/package.json`, 'utf8'));
const sdk = await import(pathToFileURL(`${sdkFolder}/dist/index.js`));

const mode = process.env.SCENARIO_MODE;
const image = process.env.SCENARIO_IMAGE ?? 'python:3.11';
const connectionConfig = { protocol: 'http', useServerProxy: 'SCENARIO_PROXY' in process.env };
const TIMEOUT_MS = 30_000;
const checks = [];
const check = (name, run) => checks.push({ name, run });
const stdout = (e) => e.logs.stdout.map((m) => m.text).join('\n');
const stderr = (e) => e.logs.stderr.map((m) => m.text).join('\n');
const at = (name) => `${directory}/${name}`;

// A promise that fails with an exception of the API with this status and code.
async function refuses(promise, status, code) {
  const e = await promise.then(() => null, (x) => x);
  assert.ok(e instanceof sdk.SandboxApiException, `refused, got ${e}`);
  assert.equal(e.statusCode, status);
  // Of a failed download the SDK reports only the text that was received.
  const got = typeof e.rawBody === 'string' ? JSON.parse(e.rawBody).code : e.error.code;
  if (code) assert.equal(got, code);
}

// A Date close to a time in milliseconds.
function near(date, time, tolerance) {
  assert.ok(Math.abs(new Date(date).getTime() - time) < tolerance, `${date}`);
}

// The SDK can only poll the status of a command. The agent reports it in its stream.
async function follow(id) {
  const { endpoint, headers } = await sandbox.getEndpoint(44772);
  return fetch(`http://${endpoint}/command/${id}/logs?follow=true`, { headers });
}

async function untilEnded(id) {
  await (await follow(id)).text();
  const s = await sandbox.commands.getCommandStatus(id);
  assert.equal(s.running, false);
  return s;
}

async function untilLogged(id, text) {
  let got = '';
  for await (const piece of (await follow(id)).body) {
    got += Buffer.from(piece).toString();
    if (got.length >= text.length) break;
  }
  assert.equal(got, text);
}

async function untilMatch(id, pattern) {
  let got = '';
  for await (const piece of (await follow(id)).body) {
    got += Buffer.from(piece).toString();
    const found = pattern.exec(got);
    if (found) return found[1];
  }
  throw new Error(`ended without ${pattern}: ${got}`);
}

let sandbox;
let manager;
let directory;

// --- the sandbox ---

check('create waits for the agent', async () => {
  sandbox = await sdk.Sandbox.create({
    connectionConfig,
    image,
    timeoutSeconds: 300,
    env: { GIVEN: 'at creation' },
    metadata: { project: 'interop', version },
    resource: { cpu: '500m', memory: '256Mi' },
    readyTimeoutSeconds: 10,
  });
  assert.ok(sandbox.id);
  manager = sdk.SandboxManager.create({ connectionConfig });
  directory = `${stdout(await sandbox.commands.run('pwd'))}/work`;
});

check('connect to what is there', async () => {
  const other = await sdk.Sandbox.connect({
    connectionConfig,
    sandboxId: sandbox.id,
    readyTimeoutSeconds: 10,
  });
  assert.equal(other.id, sandbox.id);
  await other.close();
});

check('ping and health', async () => {
  assert.equal(await sandbox.health.ping(), true);
  assert.equal(await sandbox.isHealthy(), true);
});

check('info of the sandbox', async () => {
  const info = await sandbox.getInfo();
  assert.equal(info.id, sandbox.id);
  assert.equal(info.status.state, 'Running');
  assert.deepEqual(info.entrypoint, ['tail', '-f', '/dev/null']);
  assert.deepEqual(info.metadata, { project: 'interop', version });
  assert.equal(info.image.uri, image);
  near(info.createdAt, Date.now(), 60_000);
  near(info.expiresAt, Date.now() + 300_000, 60_000);
});

check('metrics', async () => {
  const m = await sandbox.getMetrics();
  assert.ok(m.cpuCount > 0, `${m.cpuCount} processors`);
  assert.ok(m.cpuUsedPercentage >= 0 && m.cpuUsedPercentage <= 100, `${m.cpuUsedPercentage} %`);
  assert.ok(m.memoryTotalMiB > 0 && m.memoryUsedMiB > 0);
  assert.ok(m.memoryUsedMiB <= m.memoryTotalMiB);
  assert.ok(Math.abs(m.timestamp - Date.now()) < 60_000, 'timestamp in milliseconds');
});

// --- commands ---

check('run: output and success', async () => {
  const e = await sandbox.commands.run('echo hello; echo world');
  assert.equal(stdout(e), 'hello\nworld');
  assert.equal(stderr(e), '');
  assert.ok(e.id);
  assert.ok(e.complete);
  assert.equal(e.error, undefined);
  assert.equal(e.exitCode, 0);
});

check('run: failure with its exit code', async () => {
  const e = await sandbox.commands.run('echo before; exit 3');
  assert.equal(stdout(e), 'before');
  assert.equal(e.error.name, 'CommandExecError');
  assert.equal(e.error.value, '3');
  assert.deepEqual(e.error.traceback, ['exit status 3']);
  assert.equal(e.exitCode, 3);
  assert.equal(e.complete, undefined);
});

check('run: stderr apart from stdout', async () => {
  const e = await sandbox.commands.run('echo out; echo err >&2');
  assert.equal(stdout(e), 'out');
  assert.equal(stderr(e), 'err');
});

check('run: a command that does not exist', async () => {
  const e = await sandbox.commands.run('no-such-command-here');
  assert.equal(e.exitCode, 127);
  assert.match(stderr(e), /not found/);
});

check('run: environment and working directory', async () => {
  await sandbox.files.createDirectories([{ path: at('wd'), mode: 755 }]);
  const e = await sandbox.commands.run('echo "$GREETING"; echo "$GIVEN"; pwd', {
    envs: { GREETING: 'grüße $HOME "x"' },
    workingDirectory: at('wd'),
  });
  assert.equal(stdout(e), `grüße $HOME "x"\nat creation\n${at('wd')}`);
});

check('run: a working directory that is missing is refused', async () => {
  await refuses(sandbox.commands.run('pwd', { workingDirectory: at('nowhere') }), 400,
    'INVALID_REQUEST_BODY');
});

check('run: a timeout ends it', async () => {
  const began = Date.now();
  const e = await sandbox.commands.run('sleep 20', { timeoutSeconds: 0.3 });
  assert.ok(Date.now() - began < 10_000);
  assert.notEqual(e.exitCode, 0);
  assert.ok(e.error);
});

check('run: text that is hard to carry', async () => {
  const text = 'ä 漢 😀 \u2028 \u0085 "quotes" \\ back';
  const e = await sandbox.commands.run(`printf '%s' '${text}'`);
  assert.equal(stdout(e), text);
});

check('run: much output, whole and in order', async () => {
  const e = await sandbox.commands.run('seq 1 20000');
  const lines = e.logs.stdout.map((m) => m.text);
  assert.equal(lines.length, 20000);
  assert.ok(lines.every((l, i) => l === String(i + 1)));
});

check('run: handlers hear of events as they come', async () => {
  const heard = [];
  await sandbox.commands.run('echo one; echo two >&2', {}, {
    onInit: (i) => heard.push(['init', typeof i.id]),
    onStdout: (m) => heard.push(['stdout', m.text]),
    onStderr: (m) => heard.push(['stderr', m.text]),
    onExecutionComplete: () => heard.push(['complete']),
  });
  assert.deepEqual(heard[0], ['init', 'string']);
  assert.deepEqual(heard.slice(1, -1).sort(), [['stderr', 'two'], ['stdout', 'one']]);
  assert.deepEqual(heard.at(-1), ['complete']);
});

check('run: the first output comes before the end', async () => {
  const wd = { workingDirectory: at('wd') };
  const heard = [];
  await sandbox.commands.run('mkfifo held', wd);
  for await (const ev of sandbox.commands.runStream('echo now; read x <held; echo "then $x"', wd)) {
    if (ev.type !== 'stdout') continue;
    heard.push(ev.text);
    if (heard.length === 1) await sandbox.commands.run('echo go >held', wd);
  }
  assert.deepEqual(heard, ['now', 'then go']);
});

// --- background ---

check('background: starts, tells its state, keeps its output', async () => {
  const e = await sandbox.commands.run('echo one; echo two >&2; exit 4', { background: true });
  assert.ok(e.id);
  const s = await untilEnded(e.id);
  assert.equal(s.id, e.id);
  assert.equal(s.exitCode, 4);
  assert.ok(s.startedAt instanceof Date && s.finishedAt instanceof Date);
  assert.ok(s.startedAt <= s.finishedAt);
  const logs = await sandbox.commands.getBackgroundCommandLogs(e.id);
  assert.equal(logs.content, 'one\ntwo\n');
  assert.equal(logs.cursor, 8);
});

check('background: logs from a cursor on', async () => {
  const gate = await sandbox.commands.run('mkfifo gate', { workingDirectory: at('wd') });
  assert.equal(gate.exitCode, 0);
  const b = await sandbox.commands.run('echo first; read x < gate; echo "second $x"',
    { background: true, workingDirectory: at('wd') });
  await untilLogged(b.id, 'first\n');
  let logs = await sandbox.commands.getBackgroundCommandLogs(b.id, 0);
  assert.equal(logs.content, 'first\n');
  assert.equal(logs.cursor, 6);
  assert.equal((await sandbox.commands.getCommandStatus(b.id)).running, true);
  assert.equal((await sandbox.commands.getBackgroundCommandLogs(b.id, 6)).content, '');
  await sandbox.commands.run('echo ü > gate', { workingDirectory: at('wd') });
  assert.equal((await untilEnded(b.id)).exitCode, 0);
  logs = await sandbox.commands.getBackgroundCommandLogs(b.id, 6);
  assert.equal(logs.content, 'second ü\n');
  assert.equal(logs.cursor, 16);
});

check('background: interrupt', async () => {
  const e = await sandbox.commands.run('sleep 100', { background: true });
  assert.equal((await sandbox.commands.getCommandStatus(e.id)).running, true);
  await sandbox.commands.interrupt(e.id);
  const s = await untilEnded(e.id);
  assert.notEqual(s.exitCode, 0);
});

check('foreground: interrupt from elsewhere', async () => {
  let id;
  const e = await sandbox.commands.run('echo up; sleep 100', {}, {
    onInit: (i) => { id = i.id; },
    onStdout: () => sandbox.commands.interrupt(id),
  });
  assert.ok(e.error);
  assert.notEqual(e.exitCode, 0);
});

check('commands no one knows', async () => {
  await refuses(sandbox.commands.getCommandStatus('nobody'), 404, 'INVALID_REQUEST_BODY');
  await refuses(sandbox.commands.getBackgroundCommandLogs('nobody'), 400, 'INVALID_REQUEST_BODY');
  await refuses(sandbox.commands.interrupt('nobody'), 500, 'RUNTIME_ERROR');
});

// --- sessions ---

check('session: directory and exported variables stay', async () => {
  const id = await sandbox.commands.createSession({ workingDirectory: at('wd') });
  assert.ok(id);
  assert.equal(stdout(await sandbox.commands.runInSession(id, 'pwd')), at('wd'));
  await sandbox.commands.runInSession(id, 'mkdir -p deeper && cd deeper && export KEPT="a b"');
  const e = await sandbox.commands.runInSession(id, 'echo "$KEPT"; pwd');
  assert.equal(stdout(e), `a b\n${at('wd/deeper')}`);
  assert.equal(e.exitCode, 0);
  await sandbox.commands.deleteSession(id);
});

check('session: a directory for one run becomes its own', async () => {
  const id = await sandbox.commands.createSession();
  const e = await sandbox.commands.runInSession(id, 'pwd', { workingDirectory: at('wd') });
  assert.equal(stdout(e), at('wd'));
  assert.equal(stdout(await sandbox.commands.runInSession(id, 'pwd')), at('wd'));
  await sandbox.commands.deleteSession(id);
});

check('session: exit codes, and it lives on', async () => {
  const id = await sandbox.commands.createSession();
  const e = await sandbox.commands.runInSession(id, 'exit 7');
  assert.equal(e.error.name, 'CommandExecError');
  assert.equal(e.exitCode, 7);
  assert.equal((await sandbox.commands.runInSession(id, 'false')).exitCode, 1);
  assert.equal(stdout(await sandbox.commands.runInSession(id, 'echo still here')), 'still here');
  await sandbox.commands.deleteSession(id);
});

check('session: gone when deleted', async () => {
  const id = await sandbox.commands.createSession();
  await sandbox.commands.deleteSession(id);
  await refuses(sandbox.commands.runInSession(id, 'true'), 500, 'RUNTIME_ERROR');
  await refuses(sandbox.commands.deleteSession(id), 404, 'CONTEXT_NOT_FOUND');
});

// --- files ---

const bytes = new Uint8Array(300_000).map((_, i) => (i * 31) ^ (i >> 8));

check('files: write text, read it', async () => {
  await sandbox.files.writeFiles([{ path: at('new/folders/text'), data: 'grüße\n', mode: 640 }]);
  assert.equal(await sandbox.files.readFile(at('new/folders/text')), 'grüße\n');
});

check('files: write bytes, read them', async () => {
  await sandbox.files.writeFiles([{ path: at('bytes'), data: bytes, mode: 600 }]);
  assert.deepEqual(await sandbox.files.readBytes(at('bytes')), bytes);
});

check('files: write a stream, read as a stream', async () => {
  async function* pieces() {
    for (let i = 0; i < bytes.length; i += 10_000) yield bytes.subarray(i, i + 10_000);
  }
  await sandbox.files.writeFiles([{ path: at('streamed'), data: pieces(), mode: 644 }]);
  const got = [];
  for await (const piece of sandbox.files.readBytesStream(at('streamed'))) got.push(piece);
  assert.deepEqual(new Uint8Array(Buffer.concat(got)), bytes);
});

check('files: several at once, empty ones too, odd names', async () => {
  const names = ['sev/a', 'sev/empty', 'sev/ü 漢 "x" %20', 'sev/-rf'];
  await sandbox.files.writeFiles(names.map((n) => ({ path: at(n), data: n === 'sev/empty' ? '' : n,
    mode: 644 })));
  for (const n of names) {
    assert.equal(await sandbox.files.readFile(at(n)), n === 'sev/empty' ? '' : n);
  }
});

check('files: a range', async () => {
  assert.deepEqual(await sandbox.files.readBytes(at('bytes'), { range: 'bytes=100-199' }),
    bytes.slice(100, 200));
  assert.deepEqual(await sandbox.files.readBytes(at('bytes'), { range: 'bytes=-10' }),
    bytes.slice(-10));
  await refuses(sandbox.files.readBytes(at('bytes'), { range: 'bytes=999999-' }), 416);
});

check('files: info', async () => {
  const info = await sandbox.files.getFileInfo([at('bytes'), at('new/folders/text')]);
  const b = info[at('bytes')];
  assert.equal(b.path, at('bytes'));
  assert.equal(b.size, bytes.length);
  assert.equal(b.mode, 600);
  assert.ok(Math.abs(b.modifiedAt.getTime() - Date.now()) < 60_000);
  assert.equal(info[at('new/folders/text')].mode, 640);
  await refuses(sandbox.files.getFileInfo([at('nobody')]), 404, 'FILE_NOT_FOUND');
});

check('files: permissions', async () => {
  await sandbox.files.setPermissions([{ path: at('bytes'), mode: 444 }]);
  assert.equal((await sandbox.files.getFileInfo([at('bytes')]))[at('bytes')].mode, 444);
  await sandbox.files.setPermissions([{ path: at('bytes'), mode: 644 }]);
});

check('files: move', async () => {
  await sandbox.files.moveFiles([{ src: at('streamed'), dest: at('moved/far/away') }]);
  assert.equal((await sandbox.files.readBytes(at('moved/far/away'))).length, bytes.length);
  await refuses(sandbox.files.readFile(at('streamed')), 404, 'FILE_NOT_FOUND');
  await refuses(sandbox.files.moveFiles([{ src: at('streamed'), dest: at('x') }]), 404,
    'FILE_NOT_FOUND');
});

check('files: replace', async () => {
  await sandbox.files.writeFiles([{ path: at('letter'), data: 'a-b-a-b', mode: 640 }]);
  await sandbox.files.replaceContents([{ path: at('letter'), oldContent: 'a', newContent: '漢' }]);
  assert.equal(await sandbox.files.readFile(at('letter')), '漢-b-漢-b');
  assert.equal((await sandbox.files.getFileInfo([at('letter')]))[at('letter')].mode, 640);
  if (sandbox.files.replaceContentsDetailed) {
    assert.deepEqual(await sandbox.files.replaceContentsDetailed(
      [{ path: at('letter'), oldContent: 'b', newContent: 'c' }]),
    [{ path: at('letter'), replacedCount: 2 }]);
  }
});

check('files: search', async () => {
  await sandbox.files.writeFiles(['s/one.txt', 's/deep/two.txt', 's/three.md'].map(
    (n) => ({ path: at(n), data: n, mode: 644 })));
  const found = await sandbox.files.search({ path: at('s'), pattern: '*.txt' });
  assert.deepEqual(found.map((f) => f.path).sort(), [at('s/deep/two.txt'), at('s/one.txt')]);
  assert.equal((await sandbox.files.search({ path: at('s') })).length, 3);
  await refuses(sandbox.files.search({ path: at('nowhere') }), 404, 'FILE_NOT_FOUND');
});

check('files: delete', async () => {
  await sandbox.files.deleteFiles([at('letter'), at('never-was')]);
  await refuses(sandbox.files.readFile(at('letter')), 404, 'FILE_NOT_FOUND');
});

check('directories: make, list, delete', async () => {
  await sandbox.files.createDirectories([{ path: at('d/e/f'), mode: 750 }]);
  const info = (await sandbox.files.getFileInfo([at('d/e/f')]))[at('d/e/f')];
  assert.equal(info.mode, 750);
  if (sandbox.files.listDirectory) {
    const list = await sandbox.files.listDirectory({ path: at('d'), depth: 2 });
    assert.deepEqual(list.map((f) => [f.path, f.type]),
      [[at('d/e'), 'directory'], [at('d/e/f'), 'directory']]);
  }
  await sandbox.files.deleteDirectories([at('d'), at('never-was')]);
  await refuses(sandbox.files.getFileInfo([at('d')]), 404, 'FILE_NOT_FOUND');
});

if (version !== '0.1.6') { // which does not have them
  check('files: lines of a text', async () => {
    await sandbox.files.writeFiles([{ path: at('lines'), data: '1\n2\n3\n4\n', mode: 644 }]);
    assert.equal(await sandbox.files.readFile(at('lines'), { offset: 2, limit: 2 }), '2\n3');
  });
}

// --- a port of the user's own ---

check('a server of the user', async () => {
  await sandbox.files.writeFiles([{ path: at('site/page.txt'), data: 'from inside\n', mode: 644 }]);
  const server = await sandbox.commands.run('exec python3 -u -m http.server 0 --bind 127.0.0.1',
    { background: true, workingDirectory: at('site') });
  const port = await untilMatch(server.id, /Serving HTTP on \S+ port (\d+)/);
  const { endpoint, headers } = await sandbox.getEndpoint(Number(port));
  assert.doesNotMatch(endpoint, /:\/\/|\/$/);
  const answer = await fetch(`http://${endpoint}/page.txt`, { headers });
  assert.equal(answer.status, 200);
  assert.equal(await answer.text(), 'from inside\n');
  await sandbox.commands.interrupt(server.id);
  await untilEnded(server.id);
});

// --- the life of it ---

if (version !== '0.1.6') { // which does not have it
  check('metadata', async () => {
    const want = { stage: 'two', version };
    assert.deepEqual((await sandbox.patchMetadata({ stage: 'two', project: null })).metadata, want);
    assert.deepEqual((await sandbox.getInfo()).metadata, want);
  });
}

check('lists', async () => {
  const second = await sdk.Sandbox.create({ connectionConfig, image,
    metadata: { version } });
  try {
    let page = await manager.listSandboxInfos({ states: ['Running'], metadata: { version },
      page: 1, pageSize: 1 });
    assert.deepEqual(page.items.map((i) => i.id), [second.id]);
    assert.deepEqual(page.pagination,
      { page: 1, pageSize: 1, totalItems: 2, totalPages: 2, hasNextPage: true });
    page = await manager.listSandboxInfos({ metadata: { version }, page: 2, pageSize: 1 });
    assert.deepEqual(page.items.map((i) => i.id), [sandbox.id]);
    assert.deepEqual((await manager.listSandboxInfos({ states: ['Paused'] })).items, []);
  } finally {
    await manager.killSandbox(second.id);
    await second.close();
  }
});

check('renewal', async () => {
  const { expiresAt } = await sandbox.renew(1200);
  near(expiresAt, Date.now() + 1_200_000, 60_000);
  near((await sandbox.getInfo()).expiresAt, new Date(expiresAt).getTime(), 1000);
});

check('pause and resume', async () => {
  await sandbox.files.writeFiles([{ path: at('kept'), data: 'over the pause', mode: 644 }]);
  const sleeper = await sandbox.commands.run('sleep 100', { background: true });
  await sandbox.pause();
  assert.equal((await sandbox.getInfo()).status.state, 'Paused');
  assert.deepEqual((await manager.listSandboxInfos({ states: ['Paused'] })).items.map((i) => i.id),
    [sandbox.id]);
  await refuses(sandbox.pause(), 409);
  await refuses(sandbox.commands.run('true'), 409);
  sandbox = await sandbox.resume();   // a new one, on the connections of the old one
  assert.equal((await sandbox.getInfo()).status.state, 'Running');
  assert.equal(stdout(await sandbox.commands.run(`cat ${at('kept')}`)), 'over the pause');
  assert.equal((await sandbox.commands.getCommandStatus(sleeper.id)).running, true);
  await refuses(manager.resumeSandbox(sandbox.id), 409);
});

if (sdk.SandboxManager.prototype.createSnapshot) { // the first versions do not have it
  check('snapshots', async () => {
    if (!('SCENARIO_SNAPSHOTS' in process.env)) {
      await refuses(manager.createSnapshot(sandbox.id, { name: 's' }), 501, 'SNAPSHOT::NOT_IMPLEMENTED');
      return;
    }
    await sandbox.files.writeFiles([{ path: '/srv/kept', data: 'over the snapshot', mode: 644 }]);
    const { id, status } = await manager.createSnapshot(sandbox.id, { name: 'before' });
    assert.equal(status.state, 'Creating');
    let info;
    do info = await manager.getSnapshot(id); while (info.status.state === 'Creating');
    assert.equal(info.status.state, 'Ready');
    assert.equal(info.name, 'before');
    const page = await manager.listSnapshots({ sandboxId: sandbox.id, states: ['Ready'] });
    assert.deepEqual(page.items.map((i) => i.id), [id]);
    const second = await sdk.Sandbox.create({ connectionConfig, snapshotId: id });
    try {
      assert.equal(await second.files.readFile('/srv/kept'), 'over the snapshot');
      await refuses(manager.deleteSnapshot(id), 409, 'SNAPSHOT::DELETE_CONFLICT');
    } finally {
      await second.kill();
      await second.close();
    }
    await manager.deleteSnapshot(id);
    await refuses(manager.getSnapshot(id), 404, 'SNAPSHOT::NOT_FOUND');
  });
}

check('an unknown sandbox has a request id', async () => {
  const e = await manager.getSandboxInfo('no-such-sandbox').catch((x) => x);
  assert.equal(e.statusCode, 404);
  assert.ok(e.requestId);
});

check('kill and close', async () => {
  await sandbox.kill();
  await refuses(sandbox.getInfo(), 404);
  await sandbox.close();
  await manager.close();
});

// --- running them ---

async function inTime(run) {
  let timer;
  const late = new Promise((_, no) => {
    timer = setTimeout(() => no(new Error(`not done after ${TIMEOUT_MS} ms`)), TIMEOUT_MS);
  });
  try {
    await Promise.race([run(), late]);
  } finally {
    clearTimeout(timer);
  }
}

let failed = 0;
console.log(`1..${checks.length}`);
for (const [i, { name, run }] of checks.entries()) {
  try {
    await inTime(run);
    console.log(`ok ${i + 1} - ${version}, ${mode}: ${name}`);
  } catch (e) {
    failed++;
    console.log(`not ok ${i + 1} - ${version}, ${mode}: ${name}`);
    console.log(String(e?.stack ?? e).replace(/^/gm, '# '));
  }
}
process.exit(failed ? 1 : 0);
