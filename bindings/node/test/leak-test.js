'use strict'

// No leak across open and close: objects are collected, and the memory of the process is bounded.
// Runs with --expose-gc.

const test = require('tape')
const { TerraceLevel } = require('..')
const { database, location } = require('./common')

const scale = Number(process.env.TERRACE_TEST_SCALE ?? 1)
const cycles = Math.ceil(400 * scale) + 40
const turn = () => new Promise((resolve) => setImmediate(resolve))

async function collected () {
  for (let i = 0; i < 4; i++) {
    global.gc()
    await turn()
  }
  return process.memoryUsage()
}

async function cycle (directory) {
  const db = new TerraceLevel(directory)
  await db.batch(Array.from({ length: 50 }, (_, i) =>
    ({ type: 'put', key: `key ${i}`, value: 'x'.repeat(200) })))
  await Promise.all([db.get('key 7'), db.getMany(['key 8', 'nothing']), db.has('key 9')])
  for await (const [key] of db.iterator({ limit: 5, valueEncoding: 'buffer' })) db.getSync(key)
  db.iterator()
  db.snapshot()
  db.batch().put('left', 'open')
  await db.close()
  return new WeakRef(db)
}

test('databases are collected after close', async function (t) {
  const directory = location()
  for (let i = 0; i < 40; i++) await cycle(directory)
  const before = await collected()
  const references = []
  for (let i = 40; i < cycles; i++) references.push(await cycle(directory))
  const after = await collected()
  const left = references.filter((reference) => reference.deref() !== undefined).length
  t.ok(left <= 1, `${left} of ${references.length} databases are left`)
  for (const name of ['heapUsed', 'external', 'arrayBuffers']) {
    const grown = after[name] - before[name]
    const each = (grown / references.length).toFixed(1)
    t.ok(grown < (1 << 20) + 200 * references.length, `${each} bytes of ${name} a cycle`)
  }
  const grown = (after.rss - before.rss) / 2 ** 20
  t.ok(grown < 32, `${grown.toFixed(1)} MiB of resident memory in ${references.length} cycles`)
})

test('iterators, snapshots and batches are collected after close', async function (t) {
  const db = database()
  await db.batch(Array.from({ length: 1000 }, (_, i) =>
    ({ type: 'put', key: `key ${i}`, value: 'x'.repeat(100) })))
  const rounds = Math.ceil(20_000 * scale) + 500
  const work = async (rounds) => {
    for (let i = 0; i < rounds; i++) {
      const snapshot = db.snapshot()
      const iterator = db.iterator({ snapshot })
      await iterator.next()
      await iterator.close()
      await snapshot.close()
      await db.batch().put('a', 'b').write()
      await db.get('key 5')
    }
  }
  await work(500)
  const before = await collected()
  await work(rounds)
  const after = await collected()
  const grown = (after.rss - before.rss) / 2 ** 20
  t.ok(grown < 32, `${grown.toFixed(1)} MiB of resident memory in ${rounds} rounds`)
  const heap = after.heapUsed - before.heapUsed
  t.ok(heap < (1 << 20) + 20 * rounds, `${(heap / rounds).toFixed(1)} bytes of heap a round`)
  await db.close()
})
