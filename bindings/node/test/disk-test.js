'use strict'

// A full disk and a directory that cannot be written: on a small tmpfs, where the tests may mount
// one.

const { execFileSync } = require('child_process')
const fs = require('fs')
const test = require('tape')
const { TerraceLevel } = require('..')
const { failure, location } = require('./common')

function mounted (options) {
  const directory = location()
  fs.mkdirSync(directory)
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', directory], { stdio: 'pipe' })
    return directory
  } catch {
    return null
  }
}

const unmount = (directory) => execFileSync('umount', ['-l', directory])

test('a full disk', async function (t) {
  const directory = mounted('size=2m')
  if (directory === null) return t.skip('no tmpfs can be mounted here')
  const db = new TerraceLevel(`${directory}/db`, { writeBufferSize: 256 << 10, compression: false })
  await db.open()
  let written = 0
  let err
  for (; written < 10_000 && err === undefined; written++) {
    err = await failure(db.put(`key ${written}`, String(written).repeat(200)))
  }
  t.is(err?.code, 'LEVEL_IO_ERROR', err?.message)
  t.is(await db.get('key 0'), '0'.repeat(200), 'reads go on')
  await failure(db.close())
  execFileSync('mount', ['-o', 'remount,size=64m', directory])
  await db.open()
  const lost = []
  for (let i = 0; i < written - 1; i++) {
    if (await db.get(`key ${i}`) !== String(i).repeat(200)) lost.push(i)
  }
  t.same(lost, [], `${written - 1} acknowledged writes are there`)
  await db.put('later', 'on')
  await db.close()
  unmount(directory)
})

test('a file system that is read-only', async function (t) {
  const directory = mounted('size=8m')
  if (directory === null) return t.skip('no tmpfs can be mounted here')
  const db = new TerraceLevel(`${directory}/db`)
  await db.put('a', '1')
  await db.close()
  execFileSync('mount', ['-o', 'remount,ro', directory])
  const err = await failure(db.open())
  t.is(err?.code, 'LEVEL_DATABASE_NOT_OPEN')
  t.is(err.cause.code, 'LEVEL_IO_ERROR', err.cause.message)
  const other = await failure(new TerraceLevel(`${directory}/other`).open())
  t.is(other?.code, 'LEVEL_DATABASE_NOT_OPEN', other?.cause.message)
  unmount(directory)
})
