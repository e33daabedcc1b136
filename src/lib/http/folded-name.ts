/**
 * Maps aliases of a field name to one spelling: CGI and its descendants do not distinguish characters other than
 * letters and digits.
 */
export function foldedName(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, "-");
}
