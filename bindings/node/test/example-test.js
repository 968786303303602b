'use strict'

const { execFileSync } = require('child_process')
const path = require('path')
const test = require('tape')

const root = path.join(__dirname, '..')
const run = (...args) => execFileSync(process.execPath, args, { cwd: root, encoding: 'utf8' })

test('a program for classic-level prints the same with only its import changed', function (t) {
  const own = run('example/fruit.js')
  t.is(own, run('example/fruit.js', 'classic-level'))
  t.ok(own.includes('LEVEL_LOCKED') && own.includes('removed: true'))
  t.end()
})

test('an ES module in the style of level', function (t) {
  t.is(run('example/level.mjs'), '1\nb 2\n')
  t.end()
})

test('both module systems export the same', async function (t) {
  const required = require('terrace-level')
  const imported = await import('terrace-level')
  for (const name of ['TerraceLevel', 'ClassicLevel', 'Level']) {
    t.is(typeof required[name], 'function')
    t.is(imported[name], required[name], name)
  }
})

test('the declarations and a program that uses them pass the TypeScript compiler', function (t) {
  const tsc = require.resolve('typescript/bin/tsc')
  try {
    t.is(run(tsc, '--project', 'test/types'), '')
  } catch (err) {
    t.fail(err.stdout)
  }
  t.end()
})
