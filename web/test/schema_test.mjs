// Documents follow the schema: those that the other tests plant, and those that the program writes.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import Ajv from 'ajv';

const schema = JSON.parse(
  readFileSync(new URL('../schema/report.schema.json', import.meta.url), 'utf8'),
);
const validate = new Ajv({ allErrors: true, strict: false }).compile(schema);

export function assert_valid(document) {
  validate(document);
  assert.deepEqual(validate.errors, null);
}

export function schema_tests(test, { reports }) {
  const planted = ['usual', 'no_fit', 'one_run', 'diverged', 'correlated', 'independent', 'bare'];
  for (const name of planted) {
    test(`the planted document '${name}' follows the schema`, () =>
      assert_valid(reports.document(name)));
  }

  test('a field that the schema does not name is found', () => {
    const document = structuredClone(reports.document('usual'));
    document.fit.law.covariance = -0.01;
    assert.equal(validate(document), false);
  });
}
