'use strict'

// Statistics: the numbers of what was done, under the names that the declarations have.

const fs = require('fs')
const path = require('path')
const test = require('tape')
const { database } = require('./common')

/**
 * The names of an interface of the declarations, optional ones left out.
 */
function declared (name) {
  const text = fs.readFileSync(path.join(__dirname, '..', 'index.d.ts'), 'utf8')
  const body = text.split(`export interface ${name} {\n`)[1].split('\n}\n')[0]
  return [...body.matchAll(/^ {2}(\w+): /gm)].map((match) => match[1])
}

test('statistics have the names and types of the declarations', async function (t) {
  const db = database()
  await db.open()
  const stats = db.stats()
  t.same(Object.keys(stats).filter((name) => stats[name] !== undefined), declared('Stats'))
  t.is(stats.levels.length, 7)
  for (const level of stats.levels) t.same(Object.keys(level), declared('LevelStats'))
  const { levels, isExtended, ...numbers } = stats
  t.ok(Object.values(numbers).every(Number.isFinite))
  t.same([levels.map(({ level }) => level), isExtended], [[0, 1, 2, 3, 4, 5, 6], false])
  await db.close()
})

test('statistics tell what was done', async function (t) {
  const db = database({ cacheSize: 1 << 20, valueLog: 1000 })
  await db.put('a', 'x'.repeat(5000))
  const before = db.stats()
  t.is(before.sequence, 1)
  t.ok(before.userBytesWritten > 5000 && before.memtableBytes > 5000)
  t.is(before.valueFiles, 0)
  await db.compactRange('a', 'z')
  const after = db.stats()
  t.is(after.levels.reduce((sum, { files }) => sum + files, 0), 1)
  t.ok(after.flushBytesWritten > 5000 && after.writeAmplification > 1)
  t.ok(after.liveBytes >= 5000 && after.spaceAmplification >= 1 && after.spaceAmplification < 1.2)
  t.same([after.valueFiles, after.isExtended], [1, true])
  t.ok(after.valueBytesUsed >= 5000 && after.valueFileBytes >= after.valueBytesUsed)
  t.same([after.snapshots, after.oldestSnapshotSeconds], [0, undefined])
  const snapshot = db.snapshot()
  t.is(db.stats().snapshots, 1)
  t.ok(db.stats().oldestSnapshotSeconds >= 0)
  await snapshot.close()
  await db.close()
})

test('a database that is not open has no statistics', async function (t) {
  const db = database()
  t.throws(() => db.stats(), { code: 'LEVEL_DATABASE_NOT_OPEN' })
  await db.open()
  await db.close()
  t.throws(() => db.stats(), { code: 'LEVEL_DATABASE_NOT_OPEN' })
})
