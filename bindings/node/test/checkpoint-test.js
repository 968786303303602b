'use strict'

// Copies of a database in use: what they hold, who opens them, and what they are refused for.

const fs = require('fs')
const path = require('path')
const test = require('tape')
const { ClassicLevel } = require('classic-level')
const { TerraceLevel } = require('..')
const { database, failure, location } = require('./common')

const entries = (prefix, count) => Array.from({ length: count }, (_, i) =>
  [`${prefix} ${String(i).padStart(4, '0')}`, `${'x'.repeat(i % 300)} ${i}`])

const puts = (entries) => entries.map(([key, value]) => ({ type: 'put', key, value }))

test('a copy holds what was written before, in tables and in memory', async function (t) {
  const db = database()
  const [flushed, inMemory] = [entries('a', 2000), entries('b', 100)]
  await db.batch(puts(flushed))
  await db.compactRange('a', 'c')
  await db.batch(puts(inMemory))
  const copy = location()
  const report = await db.checkpoint(copy)
  await db.put('c', 'later')
  await db.del(flushed[0][0])
  await db.compactRange('a', 'd')

  const tables = fs.readdirSync(copy).filter((name) => name.endsWith('.ldb'))
  const bytes = tables.map((name) => fs.statSync(path.join(copy, name)).size)
  t.is(report.tables, tables.length)
  t.is(report.tableBytes, bytes.reduce((sum, size) => sum + size, 0))
  t.ok(report.linked >= 1 && report.linked < report.tables, 'tables are links, memory is not')
  t.same([report.valueFiles, report.valueBytes, report.sequence], [0, 0, 2100])

  const expected = JSON.stringify([...flushed, ...inMemory])
  for (const Level of [TerraceLevel, ClassicLevel, TerraceLevel]) {
    const copied = new Level(copy, { createIfMissing: false })
    t.ok(JSON.stringify(await copied.iterator().all()) === expected, Level.name)
    await copied.close()
  }

  await TerraceLevel.destroy(copy)
  t.is(await db.get('c'), 'later')
  t.is((await db.keys().all()).length, 2100, 'the database has what the copy shared')
  await db.close()
})

test('a copy with value files', async function (t) {
  const db = database({ valueLog: 1000 })
  await db.put('large', 'x'.repeat(5000))
  await db.compactRange('a', 'z')
  const copy = location()
  const report = await db.checkpoint(copy)
  t.is(report.valueFiles, 1)
  t.ok(report.valueBytes >= 5000)
  await db.close()
  await TerraceLevel.destroy(db.location)
  const copied = new TerraceLevel(copy)
  t.is(await copied.get('large'), 'x'.repeat(5000))
  await copied.close()
})

test('copies beside writes, each of one moment', async function (t) {
  const db = database({ writeBufferSize: 64 << 10 })
  await db.open()
  let round = 0
  let isDone = false
  const writer = (async function () {
    for (; !isDone; round++) {
      const value = `${round} ${'x'.repeat(1000)}`
      await db.batch([{ type: 'put', key: 'a', value }, { type: 'put', key: 'z', value }])
      await db.put(`m ${round % 100}`, value)
    }
  })()
  const copies = []
  for (let i = 0; i < 5; i++) {
    await db.put('a', `before ${'x'.repeat(1000)}`)
    const copy = location()
    const before = round
    await db.checkpoint(copy)
    copies.push([copy, before])
  }
  isDone = true
  await writer
  await db.close()
  for (const [copy, before] of copies) {
    const copied = new TerraceLevel(copy, { createIfMissing: false })
    const [a, z] = await copied.getMany(['a', 'z'])
    t.ok(a === z || a.startsWith('before'), 'a batch is whole')
    t.ok(before === 0 || parseInt(z) >= before - 1, 'acknowledged writes are there')
    await copied.close()
  }
})

test('a checkpoint before and during open, and before close', async function (t) {
  const db = database()
  const copies = [location(), location()]
  const early = db.checkpoint(copies[0])
  await db.put('a', 'b')
  t.is((await early).valueFiles, 0)
  const late = db.checkpoint(copies[1])
  await db.close()
  t.is((await late).sequence, 1, 'close has waited')
  const copied = new TerraceLevel(copies[1], { createIfMissing: false })
  t.is(await copied.get('a'), 'b')
  await copied.close()
})

test('refused checkpoints', async function (t) {
  const db = database()
  await db.put('a', 'b')

  for (const name of [undefined, null, '', 7, 'a\0b', {}]) {
    t.is((await failure(db.checkpoint(name)))?.name, 'TypeError')
  }

  const used = location()
  fs.mkdirSync(used)
  fs.writeFileSync(path.join(used, 'file'), 'mine')
  for (const name of [used, db.location]) {
    const err = await failure(db.checkpoint(name))
    t.is(err?.code, 'LEVEL_INVALID_ARGUMENT', err?.message)
    t.ok(err.message.includes(name))
  }
  t.same(fs.readdirSync(used), ['file'])

  const inFile = path.join(used, 'file', 'copy')
  const err = await failure(db.checkpoint(inFile))
  t.is(err?.code, 'LEVEL_IO_ERROR', err?.message)
  t.ok(err.message.includes(path.join(used, 'file')))

  t.is(await db.get('a'), 'b', 'the database is as it was')
  await db.close()
  const closed = await failure(db.checkpoint(location()))
  t.is(closed?.code, 'LEVEL_DATABASE_NOT_OPEN', closed?.message)
})
