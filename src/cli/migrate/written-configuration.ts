import { Document, isMap, isScalar, isSeq, visit } from "yaml";
import type { Draft } from "./migration.ts";

/** Maximum length of a collection on one line, in characters of JSON. */
const SHORT = 76;

/** Renders a configuration as YAML, with short collections on one line and blank lines between sections. */
export function configurationText(draft: Draft, from: string): string {
  const { server, admin, users, tokens, identity, routes, upstreams, log } = draft;
  const ordered = { server, admin, users, tokens, identity, routes, upstreams, log };
  const sections = Object.entries(ordered).filter(
    ([, value]) => value !== undefined && JSON.stringify(value) !== "{}",
  );
  const document = new Document(Object.fromEntries(sections), { aliasDuplicateObjects: false });
  visit(document, {
    Collection(_key, node, path) {
      if (path.length > 2 && JSON.stringify(node.toJSON()).length <= SHORT) node.flow = true;
    },
  });
  if (isMap(document.contents)) {
    for (const [index, { key, value }] of document.contents.items.entries()) {
      if (!isScalar(key)) continue;
      if (index > 0) key.spaceBefore = true;
      if (isSeq(value) || (isMap(value) && key.value === "upstreams")) value.flow = false;
    }
  }
  document.commentBefore = ` Made by sallyport migrate --from ${from}. Read its report, then run sallyport check.`;
  return document.toString({ lineWidth: 0, flowCollectionPadding: true });
}
