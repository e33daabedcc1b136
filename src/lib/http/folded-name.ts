/** Maps aliases of a field's name to one spelling: CGI and its descendants treat all characters except letters and digits alike. */
export function foldedName(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, "-");
}
