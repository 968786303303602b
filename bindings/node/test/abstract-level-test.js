'use strict'

// The published suite of abstract-level, complete.

const suite = require('abstract-level/test')
const test = require('tape')
const { database } = require('./common')

suite({ test, factory: (options) => database(options) })
