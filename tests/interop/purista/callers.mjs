// SPDX-License-Identifier: Apache-2.0
//
// usage: callers.mjs nats|mqtt|amqp PORT NODE_MODULES COUNT
//
// Sends COUNT executeBash commands at once, as PURISTA's event bridges do with the same clients, and prints
// what came back: one JSON line for each, in the order in which they were sent.

import { randomBytes } from 'node:crypto'
import { createRequire } from 'node:module'

const [kind, port, modules, count] = process.argv.slice(2)
const load = createRequire(`${modules}/`)
const hex = () => randomBytes(16).toString('hex')
const instance = hex()
const BOX = '0f1e2d3c-4b5a-4978-8796-a5b4c3d2e1f0'

// PURISTA's function for parts of subjects and topics.
const words = /[A-Z]{2,}(?=[A-Z][a-z]+[0-9]*|\b)|[A-Z]?[a-z]+[0-9]*|[A-Z]|[0-9]+/g
const snake = text => text.match(words)?.map(w => w.toLowerCase()).join('_') ?? text

const command = i => ({
  sender: { serviceName: 'BashToolAdapter', serviceVersion: '1', serviceTarget: 'executeCommand', instanceId: instance },
  receiver: { serviceName: 'Sandbox', serviceVersion: '1', serviceTarget: 'executeBash' },
  payload: { payload: { sandboxId: BOX, command: `echo ${i}` }, parameter: {} },
  tenantId: 'org-1', principalId: 'user-1', contentType: 'application/json', contentEncoding: 'utf-8',
  id: hex(), correlationId: hex(), timestamp: Date.now(), messageType: 'command', otp: '{}',
})

const parts = (m, none) => [m.messageType, m.principalId, m.tenantId, m.sender.instanceId, m.sender.serviceName,
  m.sender.serviceVersion, m.sender.serviceTarget, undefined, m.receiver.instanceId, m.receiver.serviceName,
  m.receiver.serviceVersion, m.receiver.serviceTarget].map(p => p === undefined ? none : snake(p))

async function overNats (messages) {
  const { connect, JSONCodec } = load('nats')
  const codec = JSONCodec()
  const nc = await connect({ servers: `127.0.0.1:${port}`, name: instance })
  const replies = await Promise.all(messages.map(async m => codec.decode(
    (await nc.request(['purista', ...parts(m, 'empty')].join('.'), codec.encode(m), { timeout: 30000 })).data)))
  await nc.close()
  return replies
}

function collect (messages) {
  const waiting = new Map(messages.map(m => [m.correlationId, Promise.withResolvers?.() ?? resolvers()]))
  return { take: (id, reply) => waiting.get(id)?.resolve(reply), all: () => Promise.all([...waiting.values()].map(w => w.promise)) }
}

function resolvers () {
  const r = {}
  r.promise = new Promise((resolve, reject) => Object.assign(r, { resolve, reject }))
  return r
}

async function overMqtt (messages) {
  const client = await load('mqtt').connectAsync(`mqtt://127.0.0.1:${port}`, { protocolVersion: 5, clean: true, keepalive: 10 })
  const replies = collect(messages)
  client.on('message', (topic, data, packet) =>
    replies.take(packet.properties.correlationData.toString(), JSON.parse(data)))
  await client.subscribeAsync(['purista', ...Array(8).fill('+'), snake(instance), '+', '+', '+'].join('/'), { qos: 1 })
  await Promise.all(messages.map(m => client.publishAsync(['purista', ...parts(m, 'none')].join('/'), JSON.stringify(m), {
    qos: 1,
    properties: {
      contentType: 'application/json', correlationData: Buffer.from(m.correlationId), messageExpiryInterval: 30,
      userProperties: { messageType: 'command', principalId: m.principalId, tenantId: m.tenantId },
    },
  })))
  const all = await replies.all()
  await client.endAsync()
  return all
}

async function overAmqp (messages) {
  const connection = await load('amqplib').connect(`amqp://127.0.0.1:${port}`)
  const channel = await connection.createChannel()
  const replies = collect(messages)
  await channel.assertExchange('purista', 'headers', { durable: true, autoDelete: false })
  const { queue } = await channel.assertQueue('', { exclusive: true, autoDelete: true, durable: false })
  await channel.bindQueue(queue, 'purista', '', { 'x-match': 'all', replyTo: queue })
  await channel.consume(queue, m => {
    const { contentType, contentEncoding } = m.properties
    if (contentType === 'application/json' && contentEncoding === 'utf-8') {
      const body = JSON.parse(m.content)
      replies.take(body.correlationId, body)
    }
  }, { noAck: true })
  for (const m of messages) {
    channel.publish('purista', '', Buffer.from(JSON.stringify(m)), {
      messageId: m.id, timestamp: m.timestamp, correlationId: m.correlationId, contentType: 'application/json',
      contentEncoding: 'utf-8', type: 'command', persistent: true, replyTo: queue,
      headers: {
        messageType: 'command', receiverServiceName: 'Sandbox', receiverServiceVersion: '1',
        receiverServiceTarget: 'executeBash', principalId: m.principalId, tenantId: m.tenantId,
      },
    })
  }
  const all = await replies.all()
  await connection.close()
  return all
}

const messages = Array.from({ length: Number(count) }, (_, i) => command(i))
const replies = await { nats: overNats, mqtt: overMqtt, amqp: overAmqp }[kind](messages)
for (const [i, reply] of replies.entries()) {
  if (reply.correlationId !== messages[i].correlationId) throw new Error(`reply ${i} belongs to another command`)
  console.log(JSON.stringify(reply))
}
