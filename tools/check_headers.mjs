// Compiles headers of src/ alone, by the commands that CMake wrote for them (cmake/HeaderCheck.cmake):
//   node tools/check_headers.mjs BUILD_FOLDER [src/room/name.h ...]     without names every header
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';

const [build, ...names] = process.argv.slice(2);
if (!build) {
  console.error('usage: node tools/check_headers.mjs BUILD_FOLDER [src/room/name.h ...]');
  process.exit(2);
}

const kHeader = /\/headers\/(.+\.h)\.cpp$/;
const wanted = new Set(names.map((name) => name.replace(/^src\//, '')));
const commands = JSON.parse(readFileSync(join(build, 'compile_commands.json'), 'utf8'))
  .map(({ directory, command, file }) => ({ directory, command, header: kHeader.exec(file)?.[1] }))
  .filter(({ header }) => header && (wanted.size === 0 || wanted.has(header)));

let failed = 0;
async function work() {
  for (let next = commands.shift(); next; next = commands.shift()) {
    const { directory, command, header } = next;
    const only = command.replace(/ -o \S+/, '') + ' -fsyntax-only';
    const compiler = spawn('sh', ['-c', only], { cwd: directory, stdio: 'inherit' });
    const code = await new Promise((done) => compiler.on('close', done));
    if (code === 0) continue;
    console.error(`src/${header} does not compile alone: it lacks an #include`);
    ++failed;
  }
}
await Promise.all(Array.from({ length: availableParallelism() }, work));
process.exit(failed ? 1 : 0);
