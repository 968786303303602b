'use strict'

// Runs every test file in a process of its own, a few at a time, and prints how many assertions
// passed. With `short` the randomised ones are shorter.

const { spawn } = require('child_process')
const fs = require('fs')
const path = require('path')

const isShort = process.argv.includes('short')
const env = { ...process.env }
if (isShort) env.TERRACE_TEST_SCALE ??= '0.2'

const files = fs.readdirSync(__dirname).filter((name) => name.endsWith('-test.js'))
// The longest one first.
files.sort((a, b) => b.includes('abstract') - a.includes('abstract'))

function run (file) {
  return new Promise((resolve) => {
    const args = ['--expose-gc', path.join(__dirname, file)]
    const own = { ...env }
    if (file.startsWith('leak')) {
      // What the process takes must not depend on when garbage is collected, or on later threads.
      args.unshift('--max-semi-space-size=1')
      own.MALLOC_ARENA_MAX = '1'
    }
    const child = spawn(process.execPath, args, { env: own, stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    child.stdout.on('data', (data) => { output += data })
    child.stderr.on('data', (data) => { output += data })
    child.on('close', (code, signal) => {
      const count = (word) => Number(output.match(new RegExp(`^# ${word} +(\\d+)`, 'm'))?.[1] ?? 0)
      const [tests, failed] = [count('tests'), count('fail')]
      const isOk = code === 0 && failed === 0 && tests > 0
      console.log(`${file.padEnd(24)} ${String(tests).padStart(5)} assertions, ${failed} failures` +
        (isOk ? '' : `, ended with ${signal ?? code}`))
      if (!isOk) console.log(output.split('\n').filter((line) => !/^ok |^$/.test(line)).join('\n'))
      resolve([tests, failed, isOk])
    })
  })
}

async function main () {
  const results = []
  const next = async () => {
    for (let file; (file = files.shift()) !== undefined;) results.push(await run(file))
  }
  await Promise.all([next(), next()])
  const sum = (index) => results.reduce((sum, result) => sum + result[index], 0)
  console.log(`terrace-level: ${sum(0)} assertions, ${sum(1)} failures`)
  if (!results.every(([, , isOk]) => isOk)) process.exitCode = 1
}

main()
