'use strict'

// Builds the native half with Cargo and puts it beside this file: node build.js [PROFILE]

const { execFileSync } = require('child_process')
const fs = require('fs')
const path = require('path')

const workspace = path.join(__dirname, '..')
const library = {
  linux: 'libterrace_node.so', darwin: 'libterrace_node.dylib', win32: 'terrace_node.dll'
}[process.platform]

const target = process.env.CARGO_TARGET_DIR ?? path.join(workspace, 'target')
const profile = process.argv[2] ?? 'release'
const args = ['build', '--profile', profile, '--locked', '--package', 'terrace-node']
execFileSync('cargo', args, { cwd: workspace, stdio: 'inherit' })

// Beside and renamed: a process that has the old one loaded keeps it.
const built = path.join(__dirname, 'terrace-level.node')
fs.copyFileSync(path.join(target, profile, library), `${built}.new`)
fs.renameSync(`${built}.new`, built)
