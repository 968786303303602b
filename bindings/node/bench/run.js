'use strict'

// Terrace beside classic-level: the same program on either, in turns, in one process. Prints the
// median of the rounds and the ratio of the medians.
//
//   node bench/run.js [rounds] [entries]

const fs = require('fs')
const os = require('os')
const path = require('path')
const { TerraceLevel } = require('..')
const { ClassicLevel } = require('classic-level')

const rounds = Number(process.argv[2] ?? 5)
const entries = Number(process.argv[3] ?? 100_000)
const only = process.argv[4]
const value = 'v'.repeat(100)
const root = fs.mkdtempSync(path.join(os.tmpdir(), 'terrace-bench-'))
process.on('exit', () => fs.rmSync(root, { recursive: true, force: true }))

const engines = { terrace: TerraceLevel, classic: ClassicLevel }
const key = (number) => String(number).padStart(16, '0')

// A sequence that visits keys in no order, the same for both.
function * shuffled (count) {
  let number = 1
  for (let i = 0; i < count; i++) {
    number = (number * 1103515245 + 12345) % 2147483648
    yield key(number % entries)
  }
}

async function concurrently (keys, width, work) {
  let group = []
  for (const key of keys) {
    group.push(work(key))
    if (group.length === width) {
      await Promise.all(group)
      group = []
    }
  }
  await Promise.all(group)
}

const few = Math.ceil(entries / 5)

// Each: what is measured, on a database that is filled or empty, and how many operations it is.
const cases = [
  ['put, one at a time', false, few, async (db) => {
    for (const key of shuffled(few)) await db.put(key, value)
  }],
  ['put, 100 at a time', false, entries, (db) =>
    concurrently(shuffled(entries), 100, (key) => db.put(key, value))],
  ['batch of 1000', false, entries, async (db) => {
    for (let from = 0; from < entries; from += 1000) {
      const operations = []
      for (let i = from; i < from + 1000; i++) operations.push({ type: 'put', key: key(i), value })
      await db.batch(operations)
    }
  }],
  ['chained batch of 1000', false, entries, async (db) => {
    for (let from = 0; from < entries; from += 1000) {
      const batch = db.batch()
      for (let i = from; i < from + 1000; i++) batch.put(key(i), value)
      await batch.write()
    }
  }],
  ['get, one at a time', true, few, async (db) => {
    for (const key of shuffled(few)) await db.get(key)
  }],
  ['get, 100 at a time', true, entries, (db) =>
    concurrently(shuffled(entries), 100, (key) => db.get(key))],
  ['get of buffers, 100 at a time', true, entries, (db) =>
    concurrently(shuffled(entries), 100, (key) => db.get(key, { valueEncoding: 'buffer' }))],
  ['getSync', true, entries, async (db) => {
    for (const key of shuffled(entries)) db.getSync(key)
  }],
  ['getMany of 1000', true, entries, async (db) => {
    const keys = [...shuffled(entries)]
    for (let from = 0; from < entries; from += 1000) {
      await db.getMany(keys.slice(from, from + 1000))
    }
  }],
  ['has, 100 at a time', true, entries, (db) =>
    concurrently(shuffled(entries), 100, (key) => db.has(key))],
  ['iterate, for await', true, entries, async (db) => {
    let count = 0
    for await (const [key] of db.iterator()) count += key.length > 0
    return count
  }],
  ['iterate, nextv(1000)', true, entries, async (db) => {
    const iterator = db.iterator({ highWaterMarkBytes: 1 << 20 })
    while ((await iterator.nextv(1000)).length > 0);
    await iterator.close()
  }],
  ['iterate, all()', true, entries, (db) => db.iterator().all()],
  ['iterate buffers, for await', true, entries, async (db) => {
    let count = 0
    const options = { keyEncoding: 'buffer', valueEncoding: 'buffer' }
    for await (const [key] of db.iterator(options)) count += key.length > 0
    return count
  }],
  ['iterate keys', true, entries, (db) => db.keys().all()]
]

async function fill (db) {
  for (let from = 0; from < entries; from += 1000) {
    const operations = []
    for (let i = from; i < from + 1000; i++) operations.push({ type: 'put', key: key(i), value })
    await db.batch(operations)
  }
  await db.compactRange(key(0), key(entries))
}

const median = (numbers) => numbers.sort((a, b) => a - b)[numbers.length >> 1]

async function main () {
  const filled = {}
  for (const [name, Level] of Object.entries(engines)) {
    filled[name] = new Level(path.join(root, name))
    await fill(filled[name])
  }

  console.log(`${entries} entries of 16 + ${value.length} bytes, ${rounds} rounds, medians, ` +
    'operations a second')
  const heads = ['terrace'.padStart(10), 'classic'.padStart(10), 'ratio'.padStart(7)]
  console.log('case'.padEnd(32), ...heads)

  for (const [title, isFilled, operations, work] of cases) {
    if (only && !title.includes(only)) continue
    const speeds = { terrace: [], classic: [] }

    for (let round = 0; round < rounds; round++) {
      const names = round % 2 === 0 ? ['terrace', 'classic'] : ['classic', 'terrace']

      for (const name of names) {
        const location = path.join(root, 'empty')
        const db = isFilled ? filled[name] : new engines[name](location)
        await db.open()
        global.gc?.()
        const start = process.hrtime.bigint()
        await work(db)
        speeds[name].push(operations / (Number(process.hrtime.bigint() - start) / 1e9))
        if (!isFilled) {
          await db.close()
          fs.rmSync(location, { recursive: true })
        }
      }
    }

    const [terrace, classic] = [median(speeds.terrace), median(speeds.classic)]
    console.log(title.padEnd(32), String(Math.round(terrace)).padStart(10),
      String(Math.round(classic)).padStart(10), (terrace / classic).toFixed(2).padStart(7))
  }

  for (const db of Object.values(filled)) await db.close()
}

main().catch((err) => {
  console.error(err)
  process.exit(1)
})
