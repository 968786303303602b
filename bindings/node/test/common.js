'use strict'

// Directories that are removed when the process ends, databases in them, and failures of promises.

const fs = require('fs')
const os = require('os')
const path = require('path')
const { TerraceLevel } = require('..')

const root = fs.mkdtempSync(path.join(os.tmpdir(), 'terrace-level-'))
let count = 0

process.on('exit', () => fs.rmSync(root, { recursive: true, force: true }))

/**
 * Returns the name of a directory that is not there yet.
 */
exports.location = function () {
  return path.join(root, String(++count))
}

/**
 * Returns a database in a new directory.
 */
exports.database = function (options) {
  return new TerraceLevel(exports.location(), options)
}

/**
 * Returns what a promise was rejected with, or undefined.
 */
exports.failure = async function (promise) {
  try {
    await promise
  } catch (err) {
    return err
  }
  return undefined
}
