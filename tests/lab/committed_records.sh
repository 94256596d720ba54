#!/usr/bin/env bash
# The verdicts on trained claims are those of the records that are kept with them, and their pages
# show them: data/trained_claims.toml and docs/results/lab/*.md against records.tar.xz.
# Usage: committed_records.sh FATHOM SOURCE
set -euo pipefail
fathom=$1
pages=$2/docs/results/lab
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar -xJf "$pages/records.tar.xz" -C "$work"
"$fathom" lab list "$work/lab" --json >"$work/list.json"
"$fathom" lab report "$work/lab" --markdown "$work/pages" >/dev/null
node -e '
  const { readFileSync, existsSync } = require("fs");
  const [list, pages, made, results] = process.argv.slice(1);
  const rows = (page) => readFileSync(page, "utf8").split("\n").filter((line) => line.startsWith("|"));
  let wrong = 0;
  const say = (line) => { console.log(line); wrong += 1; };
  const trained = JSON.parse(readFileSync(list)).claims.filter((claim) => claim.kind === "trained");
  for (const { id, finding, run } of trained) {
    if (run === null) { say(`${id}: no result among the records`); continue; }
    const result = JSON.parse(readFileSync(`${results}/${id}.json`));
    if (result.quick) say(`${id}: the records are those of --quick`);
    if (run !== finding.verdict) say(`${id}: the table says ${finding.verdict}, the records ${run}`);
    const shown = new Set(rows(`${pages}/${id}.md`));
    for (const row of rows(`${made}/${id}.md`)) {
      if (!shown.has(row)) { say(`${id}: its page lacks the row ${row}`); break; }
    }
  }
  console.log(`${trained.length} trained claims, ${wrong} that differ from their records`);
  process.exit(wrong === 0 ? 0 : 1);' \
  "$work/list.json" "$pages" "$work/pages" "$work/lab/results"
