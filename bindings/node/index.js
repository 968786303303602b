'use strict'

const { TerraceLevel } = require('./lib/database')

exports.TerraceLevel = TerraceLevel

// So that a program written for classic-level or level runs with only its import changed.
exports.ClassicLevel = TerraceLevel
exports.Level = TerraceLevel
