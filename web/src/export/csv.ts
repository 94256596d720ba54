// Tables as CSV (RFC 4180), full precision, one header line.
export interface CsvTable {
  header: string[];
  rows: (string | number | null)[][];
}

function cell(value: string | number | null): string {
  if (value === null) return '';
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function csv_text(table: CsvTable): string {
  return [table.header, ...table.rows].map((row) => row.map(cell).join(',')).join('\r\n') + '\r\n';
}
