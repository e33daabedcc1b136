import { join } from "node:path";
import { readDocument, ROOT } from "../docs/markdown.ts";

/** The directory of everything that is deployed. */
export const DEPLOY = join(ROOT, "deploy");

/**
 * A YAML block of a document, as somebody would copy it into a file.
 * @param document its path below deploy/.
 * @param file what the first line of the block calls it: `# kustomization.yaml`.
 */
export function documentedFile(document: string, file: string): string {
  const { blocks } = readDocument(join("deploy", document));
  const block = blocks.find(({ text }) => text.startsWith(`# ${file}\n`));
  if (block === undefined) throw new Error(`${document} has no block called ${file}`);
  return block.text;
}
