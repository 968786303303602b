'use strict'

// A program written for classic-level. Only the import differs: run it with the other package by
// `node example/fruit.js classic-level`.

const os = require('os')
const fs = require('fs')
const path = require('path')
const { ClassicLevel } = require(process.argv[2] ?? 'terrace-level')

async function main () {
  const location = fs.mkdtempSync(path.join(os.tmpdir(), 'fruit-'))
  const db = new ClassicLevel(location, { valueEncoding: 'json', writeBufferSize: 1 << 20 })

  await db.put('apple', { colour: 'red', price: 3 })
  await db.batch([
    { type: 'put', key: 'banana', value: { colour: 'yellow', price: 1 } },
    { type: 'put', key: 'cherry', value: { colour: 'black', price: 9 } },
    { type: 'del', key: 'durian' }
  ], { sync: true })

  const before = db.snapshot()
  await db.put('apple', { colour: 'green', price: 2 })
  console.log('now', await db.get('apple'), 'before', await db.get('apple', { snapshot: before }))
  await before.close()

  for await (const [name, { price }] of db.iterator({ gte: 'b' })) console.log(name, price)

  const vegetables = db.sublevel('vegetables', { valueEncoding: 'utf8' })
  await vegetables.open()
  await vegetables.batch().put('carrot', 'orange').put('pea', 'green').write()
  console.log(await vegetables.iterator({ reverse: true }).all())

  const iterator = db.keys({ limit: 3 })
  iterator.seek('b')
  console.log(await iterator.nextv(10))
  await iterator.close()

  console.log(await db.getMany(['cherry', 'durian']), db.getSync('banana'), await db.has('fig'))
  console.log('level 0:', db.getProperty('leveldb.num-files-at-level0'), 'tables')
  await db.compactRange('a', 'z')
  console.log('on disk:', await db.approximateSize('a', 'z') > 0)

  await db.clear({ gt: 'apple', lt: 'cherry' })
  console.log(await db.keys({ lt: 'd' }).all())

  try {
    await new ClassicLevel(location).open()
  } catch (err) {
    console.log(err.code, err.cause.code)
  }

  await db.close()
  await ClassicLevel.destroy(location)
  console.log('removed:', !fs.existsSync(location))
}

main()
