import {
  TerraceLevel, type BatchOperation, type CheckpointReport, type LevelStats, type OpenOptions
} from 'terrace-level'

interface Fruit { colour: string, price: number }

export async function main (): Promise<void> {
  const options: OpenOptions = { multithreading: true, cacheSize: 1 << 20, createIfMissing: true }
  const db = new TerraceLevel<string, Fruit>('./fruit', { valueEncoding: 'json', ...options })
  await db.open(options)
  await db.put('apple', { colour: 'red', price: 3 })
  // @ts-expect-error a value of the wrong type
  await db.put('apple', 3)
  await db.put('apple', { colour: 'red', price: 3 }, { sync: true })
  const fruit: Fruit | undefined = await db.get('apple', { fillCache: false })
  const text: string | undefined = db.getSync<string, string>('apple', { valueEncoding: 'utf8' })
  const bytes = await db.get<Buffer, Uint8Array>(Buffer.from('apple'), {
    keyEncoding: 'buffer', valueEncoding: 'view'
  })
  const many: Array<Fruit | undefined> = await db.getMany(['apple'])
  const operations: Array<BatchOperation<typeof db, string, Fruit>> = [
    { type: 'put', key: 'banana', value: { colour: 'yellow', price: 1 } },
    { type: 'del', key: 'cherry' }
  ]
  await db.batch(operations, { sync: true })
  await db.batch().del('banana').write({ sync: true })
  const { signal } = new AbortController()
  for await (const [key, value] of db.iterator({ gt: 'a', signal, highWaterMarkBytes: 1000 })) {
    console.log(key.length, value.price, fruit, text, bytes, many)
  }
  const sublevel = db.sublevel<string, number>('numbers', { valueEncoding: 'json' })
  await sublevel.put('one', 1)
  const size: number = await db.approximateSize('a', 'b')
  await db.compactRange(Buffer.from('a'), Buffer.from('b'), { keyEncoding: 'buffer' })
  const { tables, linked }: CheckpointReport = await db.checkpoint('./copy')
  const { levels, cacheHits, backgroundError } = db.stats()
  const files: number = levels.reduce((sum, level: LevelStats) => sum + level.files, 0)
  console.log(files, cacheHits.toFixed(), backgroundError?.length)
  const snapshot = db.snapshot()
  await db.get('apple', { snapshot })
  await snapshot.close()
  console.log(size, tables, linked, db.getProperty('leveldb.stats'), db.location)
  await db.close()
  await TerraceLevel.repair('./fruit')
  await TerraceLevel.destroy('./fruit')
}
