// A program in the style of `level`, as an ES module.

import { Level } from 'terrace-level'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const location = mkdtempSync(join(tmpdir(), 'level-'))
const db = new Level(location, { valueEncoding: 'json' })

await db.put('a', 1)
await db.batch([{ type: 'put', key: 'b', value: 2 }])
console.log(await db.get('a'))

for await (const [key, value] of db.iterator({ gt: 'a' })) console.log(key, value)

await db.close()
await Level.destroy(location)
