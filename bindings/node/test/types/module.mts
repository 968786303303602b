import { ClassicLevel, Level, TerraceLevel } from 'terrace-level'

const classic: TerraceLevel<string, unknown> =
  new ClassicLevel<string, unknown>('./db', { valueEncoding: 'json' })
const level: TerraceLevel = new Level('./db')

export const keys: string[] = await classic.keys({ reverse: true, limit: 3 }).all()
export const values: string[] = await level.values().all()
