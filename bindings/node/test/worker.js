'use strict'

// What the tests run in worker threads.

const { parentPort, workerData } = require('worker_threads')
const { TerraceLevel } = require('..')

const { location, name, mode } = workerData

async function main () {
  const db = new TerraceLevel(location, { multithreading: mode !== 'alone' })
  await db.open()

  if (mode === 'abandon') {
    // Everything is left open, and work is under way.
    db.iterator().next()
    db.snapshot()
    for (let i = 0; i < 100; i++) db.put(`${name} ${i}`, 'x'.repeat(1000))
    parentPort.postMessage('abandoned')
    setInterval(() => {}, 1000)
    return
  }

  for (let i = 0; i < 200; i++) {
    await db.put(`${name} ${String(i).padStart(3, '0')}`, String(i))
    if (await db.get(`${name} ${String(i).padStart(3, '0')}`) !== String(i)) throw new Error('lost')
  }

  const keys = await db.keys({ gte: name, lt: `${name}~` }).all()
  await db.close()
  parentPort.postMessage(keys.length)
}

main().catch((err) => { throw err })
