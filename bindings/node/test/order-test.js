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
