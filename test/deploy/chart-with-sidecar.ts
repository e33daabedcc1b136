import { cp, mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { DEPLOY, documentedFile } from "./documents.ts";

/** Writes the chart shown in the chart's README, with Sallyport's chart as a dependency. Returns its directory. */
export async function chartWithSidecar(directory: string): Promise<string> {
  for (const name of ["Chart.yaml", "values.yaml", "templates/orders.yaml"]) {
    const file = join(directory, name);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, documentedFile("helm/sallyport/README.md", name));
  }
  const chart = join(DEPLOY, "helm/sallyport");
  await cp(chart, join(directory, "charts/sallyport"), { recursive: true });
  return directory;
}
