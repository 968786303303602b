'use strict'

// classic-level and Terrace hand one database to and fro: each writes, and reads what both wrote.

const test = require('tape')
const { ClassicLevel } = require('classic-level')
const { TerraceLevel } = require('..')
const { location } = require('./common')

test('a database that both use in turns', async function (t) {
  const directory = location()
  const model = new Map()
  for (let round = 0; round < 8; round++) {
    const Level = round % 2 === 0 ? ClassicLevel : TerraceLevel
    const db = new Level(directory, { writeBufferSize: 64 << 10 })
    const operations = []
    for (let i = 0; i < 2000; i++) {
      const key = `key ${String((i * 7 + round * 311) % 3000).padStart(4, '0')}`
      if (i % 5 === 0) {
        operations.push({ type: 'del', key })
        model.delete(key)
      } else {
        const value = `${round} ${i} ${'x'.repeat(i % 200)}`
        operations.push({ type: 'put', key, value })
        model.set(key, value)
      }
    }
    await db.batch(operations)
    if (round % 3 === 2) await db.compactRange('a', 'z')
    const expected = [...model].sort(([a], [b]) => a < b ? -1 : 1)
    const name = round % 2 ? 'Terrace' : 'classic-level'
    t.ok(JSON.stringify(await db.iterator().all()) === JSON.stringify(expected),
      `round ${round}: ${expected.length} entries through ${name}`)
    await db.close()
  }
})
