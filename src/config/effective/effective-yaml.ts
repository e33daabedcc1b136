import { Document, isCollection, isScalar } from "yaml";
import { printable } from "../../lib/text/printable.ts";
import type { Effective } from "./effective.ts";

/** Renders the effective configuration as a valid configuration file, with the origin of each value in a comment. */
export function effectiveYaml({ value, values }: Effective): string {
  const document = new Document(value);
  for (const { path, origin } of values) {
    const node = document.getIn(path, true);
    if (isCollection(node)) node.flow = true;
    if (isCollection(node) || isScalar(node)) node.comment = ` ${printable(origin)}`;
  }
  return document.toString({ lineWidth: 0, flowCollectionPadding: true });
}
