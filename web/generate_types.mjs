// Makes src/generated/NAME_schema.ts from every schema/NAME.schema.json:   node generate_types.mjs
//
// Every definition of a schema becomes an interface, and the fields of a run become a table from
// which the page builds its columns. What the page reads is checked against these types, so reading
// a field that is never written does not compile.
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const kSchemas = join(here, 'schema');
const kOutputs = join(here, 'src', 'generated');

/// transition_point -> TransitionPoint
const type_name = (name) =>
  name
    .split('_')
    .map((word) => word[0].toUpperCase() + word.slice(1))
    .join('');

const kTypes = { string: 'string', number: 'number', integer: 'number', boolean: 'boolean' };

/// The TypeScript type of a schema; `indent` is that of its line.
function type_of(schema, indent) {
  if (schema.$ref) return type_name(schema.$ref.split('/').pop());
  if ('const' in schema) return JSON.stringify(schema.const);
  if (schema.oneOf) return schema.oneOf.map((choice) => type_of(choice, indent)).join(' | ');
  const types = [schema.type].flat().map((type) => simple_type(type, schema, indent));
  return [...new Set(types)].join(' | ');
}

function simple_type(type, schema, indent) {
  if (type === 'null') return 'null';
  if (type === 'array') return `Array<${type_of(schema.items, indent)}>`;
  if (type !== 'object') {
    if (!kTypes[type]) throw new Error(`the generator does not know type '${type}'`);
    return kTypes[type];
  }
  if (schema.properties) return `{\n${members(schema, `${indent}  `)}${indent}}`;
  return `Record<string, ${type_of(schema.additionalProperties, indent)}>`;
}

function members(schema, indent) {
  const required = new Set(schema.required ?? []);
  return Object.entries(schema.properties)
    .map(([name, field]) => {
      const mark = required.has(name) ? '' : '?';
      const comment = field.description ? `${indent}/** ${field.description} */\n` : '';
      return `${comment}${indent}${name}${mark}: ${type_of(field, indent)};\n`;
    })
    .join('');
}

function declaration(name, schema) {
  const comment = schema.description ? `/** ${schema.description} */\n` : '';
  if (!schema.properties) return `${comment}export type ${name} = ${type_of(schema, '')};\n`;
  return `${comment}export interface ${name} {\n${members(schema, '  ')}}\n`;
}

function run_fields(run) {
  const fields = Object.entries(run.properties).map(([name, field]) => {
    const numeric = [field.type].flat().some((type) => type === 'number' || type === 'integer');
    return { name, format: field['x-format'], numeric, column: field['x-column'] ?? null };
  });
  const lines = fields.map((field) => `  ${JSON.stringify(field)},\n`).join('');
  const formats = [...new Set(fields.map((field) => JSON.stringify(field.format)))].join(' | ');
  return (
    `/** How values of a run are written. */\nexport type RunFormat = ${formats};\n\n` +
    '/** The fields of a run; those with a column stand in the table. */\n' +
    'export const kRunFields: readonly {\n' +
    '  readonly name: keyof Run;\n  readonly format: RunFormat;\n  readonly numeric: boolean;\n' +
    '  readonly column: { readonly title: string; readonly share: number } | null;\n' +
    `}[] = [\n${lines}];\n`
  );
}

async function generate_file(file) {
  const schema = JSON.parse(await readFile(join(kSchemas, file), 'utf8'));
  const parts = [
    `// Made by generate_types.mjs from schema/${file}; do not edit.\n`,
    declaration(type_name(schema.title), schema),
    ...Object.entries(schema.definitions).map(([name, entry]) => declaration(type_name(name), entry)),
  ];
  if (schema.definitions.run) parts.push(run_fields(schema.definitions.run));
  const output = join(kOutputs, file.replace('.schema.json', '_schema.ts'));
  const text = parts.join('\n');
  const before = await readFile(output, 'utf8').catch(() => '');
  if (before === text) return;
  await mkdir(kOutputs, { recursive: true });
  await writeFile(output, text);
}

export async function generate_types() {
  for (const file of await readdir(kSchemas)) {
    if (file.endsWith('.schema.json')) await generate_file(file);
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await generate_types();
