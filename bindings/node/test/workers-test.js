'use strict'

const path = require('path')
const test = require('tape')
const { Worker } = require('worker_threads')
const { TerraceLevel } = require('..')
const { location } = require('./common')

function start (workerData) {
  const worker = new Worker(path.join(__dirname, 'worker.js'), { workerData })
  const message = new Promise((resolve, reject) => {
    worker.once('message', resolve)
    worker.once('error', reject)
  })
  return { worker, message, exit: new Promise((resolve) => worker.once('exit', resolve)) }
}

test('threads share a database', async function (t) {
  const shared = location()
  const db = new TerraceLevel(shared, { multithreading: true })
  await db.open()
  // One of them names the directory differently.
  const names = ['a', 'b', 'c', 'd']
  const workers = names.map((name) =>
    start({ location: name === 'a' ? `${shared}/../${path.basename(shared)}` : shared, name }))
  t.same(await Promise.all(workers.map(({ message }) => message)), [200, 200, 200, 200])
  await Promise.all(workers.map(({ exit }) => exit))
  t.is((await db.keys().all()).length, 800)
  const alone = await start({ location: shared, mode: 'alone', name: 'x' }).message
    .then(() => undefined, (err) => err)
  t.is(alone?.code, 'LEVEL_DATABASE_NOT_OPEN', 'not without the option')
  await db.close()
  t.is(await start({ location: shared, mode: 'alone', name: 'x' }).message, 200, 'all are closed')
})

test('a thread that is ended in the middle of its work leaves nothing open', async function (t) {
  const shared = location()
  for (let round = 0; round < 5; round++) {
    const { worker, message } = start({ location: shared, mode: 'abandon', name: String(round) })
    t.is(await message, 'abandoned')
    await worker.terminate()
  }
  const db = new TerraceLevel(shared)
  await db.open()
  t.pass('the lock is free')
  await db.close()
})
