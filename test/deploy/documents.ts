import { join } from "node:path";
import { readDocument, ROOT } from "../docs/markdown.ts";

/** The directory with everything for deployments. */
export const DEPLOY = join(ROOT, "deploy");

/**
 * Returns a YAML block of a document, as a reader would copy it to a file.
 * @param document its path relative to deploy/.
 * @param file the name in the first line of the block: `# kustomization.yaml`.
 */
export function documentedFile(document: string, file: string): string {
  const { blocks } = readDocument(join("deploy", document));
  const block = blocks.find(({ text }) => text.startsWith(`# ${file}\n`));
  if (block === undefined) throw new Error(`${document} has no block called ${file}`);
  return block.text;
}
