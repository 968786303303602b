'use strict'

// Everything at once and in any order: use after close, close in the middle, wrong types, huge
// keys. Each call must end in a result or an error of JavaScript. TERRACE_MISUSE_SECONDS sets how
// long.

const test = require('tape')
const { TerraceLevel } = require('..')
const { location } = require('./common')

const seconds = Number(process.env.TERRACE_MISUSE_SECONDS ??
  10 * Number(process.env.TERRACE_TEST_SCALE ?? 1))
const seed = Number(process.env.TERRACE_FIRST_RUN ?? Date.now()) % 0x7fffffff

const junk = [undefined, null, '', 'a', 0, -1, NaN, 2 ** 53, true, {}, [], Symbol('x'), () => {},
  Buffer.alloc(0), Buffer.from('b'), new Uint8Array(3), new ArrayBuffer(8), 'x'.repeat(70_000),
  Buffer.alloc(1 << 20), '\ud800', new Date(0), 1n, new Map()]

test(`misuse for ${seconds} seconds, seed ${seed}`, async function (t) {
  let state = seed + 1
  const below = (limit) => {
    state = (state * 48271) % 2147483647
    return state % limit
  }
  const pick = (array) => array[below(array.length)]
  const thing = () => below(3) === 0 ? pick(junk) : `key ${below(50)}`
  const options = () => below(3) > 0
    ? undefined
    : {
        sync: pick(junk),
        fillCache: pick(junk),
        keyEncoding: pick(['utf8', 'buffer', 'view', 'json', 'nothing', undefined, 7]),
        valueEncoding: pick(['utf8', 'buffer', 'view', 'json', 'nothing', undefined]),
        limit: pick([-1, 0, 3, NaN, Infinity, 'x', undefined]),
        highWaterMarkBytes: pick([0, 100, -5, NaN, 'x', 2 ** 40, undefined, {}]),
        reverse: pick(junk),
        [pick(['gt', 'gte', 'lt', 'lte'])]: thing(),
        signal: pick([undefined, undefined, AbortSignal.abort(), AbortSignal.timeout(1),
          new AbortController()]),
        snapshot: pick([undefined, undefined, undefined, pick(snapshots), {}])
      }
  const databases = [0, 1].map(() => new TerraceLevel(location(), { writeBufferSize: 64 << 10 }))
  databases.push(new TerraceLevel(databases[0].location))
  databases.push(new TerraceLevel(location(), { multithreading: true }))
  databases.push(new TerraceLevel(databases[3].location, { multithreading: true }))
  const [iterators, snapshots, batches] = [[], [], []]
  const keep = (list, item) => {
    if (list.push(item) > 20) list.splice(below(20), 1)[0].close().catch(() => {})
  }
  const calls = [
    (db) => db.put(thing(), thing(), options()),
    (db) => db.put(thing(), thing(), options()),
    (db) => db.get(thing(), options()),
    (db) => db.getSync(thing(), options()),
    (db) => db.getMany(below(9) ? Array.from({ length: below(9) }, thing) : thing(), options()),
    (db) => db.has(thing(), options()),
    (db) => db.hasMany([thing(), thing()], options()),
    (db) => db.del(thing(), options()),
    (db) => db.batch(below(9)
      ? Array.from({ length: below(9) }, () =>
        ({ type: pick(['put', 'put', 'del', thing()]), key: thing(), value: thing() }))
      : thing(), options()),
    (db) => db.clear(options()),
    (db) => keep(iterators, pick([db.iterator, db.keys, db.values]).call(db, options())),
    (db) => keep(snapshots, db.snapshot(options())),
    (db) => keep(batches, db.batch()),
    () => pick(iterators)?.next(),
    () => pick(iterators)?.nextv(pick([1, 100, 0, -1, 2 ** 33, 'x'])),
    () => pick(iterators)?.all(),
    () => pick(iterators)?.seek(thing(), options()),
    () => pick(iterators)?.close(),
    () => pick(snapshots)?.close(),
    () => pick(batches)?.put(thing(), thing(), options()),
    () => pick(batches)?.del(thing(), options()),
    () => pick(batches)?.clear(),
    () => pick(batches)?.write(options()),
    () => pick(batches)?.close(),
    (db) => db.approximateSize(thing(), thing(), options()),
    (db) => below(9) ? undefined : db.compactRange(thing(), thing(), options()),
    (db) => below(9) ? undefined : db.checkpoint(
      below(3) ? location() : pick([db.location, undefined, 7, {}, 'a\0b'])),
    (db) => db.stats(),
    (db) => db.getProperty(pick(['leveldb.stats', 'leveldb.num-files-at-level99', 'x', thing()])),
    (db) => below(9) ? undefined : db.close(),
    (db) => below(3) ? undefined : db.open(options()),
    (db) => below(9) ? undefined : TerraceLevel.repair(pick([thing(), db.location])),
    (db) => below(20) ? undefined : TerraceLevel.destroy(pick([db.location, location()]))
  ]

  const counts = { calls: 0, errors: 0 }
  const codes = new Set()
  const failed = (err) => {
    counts.errors++
    // A destroyed signal's reason is the program's own.
    if (!(err instanceof Error)) t.fail(`not an error: ${String(err)}`)
    codes.add(err.code ?? err.name)
    if (/panicked|malformed frames/.test(err.message) || /panicked/.test(err.cause?.message)) {
      t.fail(err.message)
    }
  }
  const end = Date.now() + 1000 * seconds
  let pending = []

  while (Date.now() < end) {
    for (let i = 0; i < 50; i++) {
      counts.calls++
      try {
        const result = pick(calls)(pick(databases))
        if (typeof result?.then === 'function') pending.push(result.then(() => {}, failed))
      } catch (err) {
        failed(err)
      }
    }
    await (below(4) ? new Promise((resolve) => setImmediate(resolve)) : Promise.all(pending))
    if (pending.length > 2000) {
      await Promise.all(pending)
      pending = []
    }
  }

  await Promise.all(pending)
  for (const db of databases) await db.close().catch(failed)
  t.pass(`${counts.calls} calls, ${counts.errors} errors: ${[...codes].sort().join(' ')}`)
})
