/** Aligns rows of cells in columns, two blanks apart. Returns a line for each row. */
export function columns(rows: readonly (readonly string[])[]): string[] {
  const width = (column: number): number =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(width(column)))
      .join("  ")
      .trimEnd(),
  );
}
