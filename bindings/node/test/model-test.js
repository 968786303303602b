'use strict'

// Random operations on a database and on a sorted map, in any mix of encodings, compared.

const test = require('tape')
const { database } = require('./common')

const seed = Number(process.env.TERRACE_FIRST_RUN ?? Date.now()) % 0x7fffffff
const steps = Math.ceil(3000 * Number(process.env.TERRACE_TEST_SCALE ?? 1))

function random (seed) {
  let state = seed + 1
  return (below) => {
    state = (state * 48271) % 2147483647
    return state % below
  }
}

class Model {
  constructor (entries = new Map()) {
    this.entries = entries
  }

  apply (operations) {
    for (const { type, key, value } of operations) {
      if (type === 'put') this.entries.set(key, value)
      else this.entries.delete(key)
    }
  }

  range ({ gt, gte, lt, lte, reverse, limit }) {
    const keys = [...this.entries.keys()].filter((key) =>
      (gt === undefined || key > gt) && (gte === undefined || key >= gte) &&
      (lt === undefined || key < lt) && (lte === undefined || key <= lte)).sort()
    if (reverse) keys.reverse()
    return keys.slice(0, limit ?? Infinity).map((key) => [key, this.entries.get(key)])
  }
}

test(`random operations against a model, seed ${seed}`, async function (t) {
  const below = random(seed)
  const options = { writeBufferSize: 64 << 10, maxFileSize: 1 << 20 }
  const db = database(options)
  // A chained batch, the first step of one seed in twenty, does not wait for a deferred open.
  await db.open()
  const model = new Model()
  let snapshot = null
  let old = null
  const key = () => `key ${String(below(300)).padStart(3, '0')}${below(9) === 0 ? 'é' : ''}`
  const value = () => `value ${'x'.repeat(below(400))} ${below(1000)}`
  const operation = () => below(3) === 0
    ? { type: 'del', key: key() }
    : { type: 'put', key: key(), value: value() }
  const range = () => {
    const range = {}
    const [lower, upper] = [key(), key()].sort()
    if (below(2)) range[below(2) ? 'gt' : 'gte'] = lower
    if (below(2)) range[below(2) ? 'lt' : 'lte'] = upper
    if (below(2)) range.reverse = true
    if (below(3) === 0) range.limit = below(20)
    return range
  }
  const buffers = { keyEncoding: 'buffer', valueEncoding: 'buffer' }
  let compared = 0

  const same = (actual, expected, message) => {
    compared++
    if (JSON.stringify(actual) !== JSON.stringify(expected)) t.deepEqual(actual, expected, message)
  }

  for (let step = 0; step < steps; step++) {
    const kind = below(20)
    const message = `step ${step}, kind ${kind}`

    if (kind < 3) {
      const put = { type: 'put', key: key(), value: value() }
      await db.put(put.key, put.value)
      model.apply([put])
    } else if (kind < 4) {
      const k = key()
      await db.del(Buffer.from(k), buffers)
      model.apply([{ type: 'del', key: k }])
    } else if (kind < 6) {
      const operations = Array.from({ length: below(20) }, operation)
      await db.batch(operations)
      model.apply(operations)
    } else if (kind < 7) {
      const operations = Array.from({ length: below(20) }, operation)
      const batch = db.batch()
      for (const { type, key, value } of operations) {
        if (type === 'put') batch.put(key, value)
        else batch.del(key)
      }
      await batch.write({ sync: below(4) === 0 })
      model.apply(operations)
    } else if (kind < 8) {
      // Not awaited one by one: takes effect in order all the same.
      const operations = Array.from({ length: below(20) }, operation)
      await Promise.all(operations.map(({ type, key, value }) =>
        type === 'put' ? db.put(key, value) : db.del(key)))
      model.apply(operations)
    } else if (kind < 9 && below(8) === 0) {
      const cleared = range()
      await db.clear(cleared)
      model.apply(model.range(cleared).map(([key]) => ({ type: 'del', key })))
    } else if (kind < 11) {
      const k = key()
      same(await db.get(k), model.entries.get(k), message)
      same(db.getSync(k), model.entries.get(k), message)
      same(await db.has(k), model.entries.has(k), message)
      const bytes = await db.get(Buffer.from(k), buffers)
      same(bytes?.toString(), model.entries.get(k), message)
    } else if (kind < 13) {
      const keys = Array.from({ length: below(40) }, key)
      same(await db.getMany(keys), keys.map((key) => model.entries.get(key)), message)
      same(await db.hasMany(keys), keys.map((key) => model.entries.has(key)), message)
      same(await Promise.all(keys.map((key) => db.get(key))),
        keys.map((key) => model.entries.get(key)), message)
    } else if (kind < 17) {
      const [at, expected] = snapshot !== null && below(3) === 0
        ? [{ snapshot }, old]
        : [{}, model]
      const asked = { ...range(), highWaterMarkBytes: below(5000) }
      const all = expected.range(asked)
      same(await db.iterator({ ...asked, ...at }).all(), all, message)
      same(await db.keys({ ...asked, ...at }).all(), all.map(([key]) => key), message)
      const seen = []
      for await (const entry of db.iterator({ ...asked, ...at })) seen.push(entry)
      same(seen, all, message)
      const [found, values] = [[], db.values({ ...asked, ...at, valueEncoding: 'buffer' })]
      for (let some; (some = await values.nextv(1 + below(50))).length > 0;) found.push(...some)
      await values.close()
      same(found.map(String), all.map(([, value]) => value), message)
    } else if (kind < 18) {
      const asked = { ...range(), limit: undefined }
      const iterator = db.iterator(asked)
      const target = key()
      if (below(2)) await iterator.next()
      iterator.seek(target)
      const all = model.range(asked)
      const index = all.findIndex(([key]) => asked.reverse ? key <= target : key >= target)
      const inRange = (asked.gt === undefined || target > asked.gt) &&
        (asked.gte === undefined || target >= asked.gte) &&
        (asked.lt === undefined || target < asked.lt) &&
        (asked.lte === undefined || target <= asked.lte)
      const expected = index < 0 || !inRange ? [] : all.slice(index, index + 3)
      const seen = []
      for (let i = 0; i < 3; i++) {
        const entry = await iterator.next()
        if (entry === undefined) break
        seen.push(entry)
      }
      await iterator.close()
      same(seen, expected, message)
    } else if (kind < 19) {
      await snapshot?.close()
      snapshot = db.snapshot()
      old = new Model(new Map(model.entries))
    } else if (below(10) === 0) {
      snapshot = old = null
      await db.close()
      await db.open(options)
    }
  }

  t.ok(compared > 0, `${compared} comparisons in ${steps} steps`)
  await db.close()
})

test('iterators over many chunks, ASCII and not, in tables', async function (t) {
  for (const letter of ['e', 'é']) {
    const db = database()
    const expected = Array.from({ length: 5000 }, (_, i) =>
      [`${letter} ${String(i).padStart(5, '0')}`, `${i} `.repeat(i % 40)])
    await db.batch(expected.map(([key, value]) => ({ type: 'put', key, value })))
    await db.compactRange('a', 'z')
    const same = (actual, expected, message) =>
      t.ok(JSON.stringify(actual) === JSON.stringify(expected), message)
    same(await db.iterator().all(), expected, 'all')
    const seen = []
    for await (const entry of db.iterator()) seen.push(entry)
    same(seen, expected, 'for await')
    const some = db.iterator({ reverse: true, highWaterMarkBytes: 3000 })
    const reversed = []
    for (let part; (part = await some.nextv(77)).length > 0;) reversed.push(...part)
    await some.close()
    same(reversed, [...expected].reverse(), 'nextv, in reverse')
    const keys = expected.map(([key]) => key)
    same(await db.keys({ limit: 4321 }).all(), keys.slice(0, 4321), 'keys')
    const mixed = db.iterator()
    same(await mixed.next(), expected[0], 'next')
    same(await mixed.next(), expected[1], 'next again')
    same(await mixed.all(), expected.slice(2), 'the rest')
    await db.close()
  }
})
