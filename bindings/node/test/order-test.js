'use strict'

const test = require('tape')
const { database } = require('./common')

test('writes that are not awaited take effect in the order of their calls', async function (t) {
  const db = database()
  await db.open()
  const writes = []
  for (let i = 0; i < 200; i++) writes.push(db.put('key', String(i), { sync: i % 50 === 0 }))
  writes.push(db.batch([{ type: 'put', key: 'other', value: 'a' }]))
  writes.push(db.clear({ gte: 'other' }))
  writes.push(db.put('third', 'b'))
  await Promise.all(writes)
  t.same(await db.iterator().all(), [['key', '199'], ['third', 'b']])
  await db.close()
})

test('a read sees the database as it was when it was called', async function (t) {
  const db = database()
  await db.put('key', 'old')
  const reads = [db.get('key'), db.getMany(['key']), db.has('other'), db.iterator().all()]
  const writes = [db.put('key', 'new'), db.put('other', 'new')]
  t.same(await Promise.all(reads), ['old', ['old'], false, [['key', 'old']]])
  await Promise.all(writes)
  t.is(await db.get('key'), 'new')
  await db.close()
})

test('close waits for what was called before it', async function (t) {
  const db = database()
  await db.open()
  const write = db.batch(Array.from({ length: 5000 }, (_, i) =>
    ({ type: 'put', key: String(i), value: 'x'.repeat(500) })))
  const read = db.getMany(['0'])
  await db.close()
  await write
  t.same(await read, [undefined])
  await db.open()
  t.is((await db.keys().all()).length, 5000)
  await db.close()
})

test('a program that awaits one lookup after the other lets the event loop turn', async function (t) {
  const db = database()
  await db.put('key', 'value')
  let turned = false
  setImmediate(() => { turned = true })
  let lookups = 0
  for (; !turned && lookups < 100_000; lookups++) {
    await (lookups % 2 === 0 ? db.get('key') : db.has('none'))
  }
  t.ok(turned, `after ${lookups} lookups`)
  await db.close()
})

test('lookups find what is in memory and what is not, large values too', async function (t) {
  const db = database()
  const large = 'x'.repeat(3 << 20)
  await db.batch([
    { type: 'put', key: 'large', value: large }, { type: 'put', key: 'empty', value: '' },
    { type: 'put', key: 'small', value: 'y' }
  ])
  const check = async (where) => {
    const found = await Promise.all(['large', 'empty', 'small', 'none'].map((key) => db.get(key)))
    t.same(found, [large, '', 'y', undefined], `${where}: strings`)
    const bytes = await db.get('large', { valueEncoding: 'buffer' })
    t.ok(bytes.equals(Buffer.from(large)), `${where}: bytes`)
    const has = await Promise.all(['large', 'empty', 'small', 'none'].map((key) => db.has(key)))
    t.same(has, [true, true, true, false], `${where}: presence`)
  }
  await check('in the memtable')
  await db.compactRange('', 'z')
  await check('in a table')
  await check('in the cache')
  await db.close()
  await db.open()
  await check('in a table that is not open')
  await db.close()
})
