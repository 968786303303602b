'use strict'

// Loads the native half: the one that `npm run build` made, or the one in the package for this
// platform.

const path = require('path')

const root = path.join(__dirname, '..')

function platform () {
  if (process.platform !== 'linux') return `${process.platform}-${process.arch}`
  const glibc = process.report.getReport().header.glibcVersionRuntime
  return `linux-${process.arch}-${glibc ? 'gnu' : 'musl'}`
}

function load () {
  const files = [
    path.join(root, 'terrace-level.node'),
    path.join(root, 'prebuilds', platform(), 'terrace-level.node')
  ]

  for (const file of files) {
    try {
      return require(file)
    } catch (err) {
      if (err.code !== 'MODULE_NOT_FOUND') throw err
    }
  }

  throw new Error(`terrace-level has no native library for ${platform()}. ` +
    `Build it with Rust: npm run build (looked for ${files.join(' and ')})`)
}

module.exports = load()
