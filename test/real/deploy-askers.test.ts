/** The examples of deploy/kubernetes are valid for the published schemas of their kinds, and for nginx. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { z } from "zod";
import { DEPLOY } from "../deploy/documents.ts";
import { FETCH_TIMEOUT, fetchedSchemas } from "../deploy/custom-resources.ts";
import { titled } from "../deploy/titled.ts";
import { testCertificates } from "../support/certificates.ts";
import { missing, runProgram } from "../support/program.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const KUBERNETES = join(DEPLOY, "kubernetes");
/** Groups of Kubernetes itself. */
const BUILT_IN = ["networking.k8s.io"];
const typed = z.looseObject({ apiVersion: z.string(), kind: z.string() });
const files = globSync("{askers,ingress}/*.yaml", { cwd: KUBERNETES }).toSorted();
const objects = files.flatMap((file) =>
  parseAllDocuments(readFileSync(join(KUBERNETES, file), "utf8")).flatMap((document) => {
    const { data } = typed.safeParse(document.toJS());
    const [group = ""] = data?.apiVersion.split("/") ?? [];
    return data === undefined || BUILT_IN.includes(group) ? [] : [{ file, ...data }];
  }),
);
const noSchemas = missing("go");

describe.skipIf(noSchemas !== undefined)(titled("the published schemas", noSchemas), () => {
  let schemas: Map<string, z.ZodType> | undefined;
  /** Why there are none, such as a machine without a way to the proxy for Go modules. */
  let reason = "";

  beforeAll(async () => {
    try {
      schemas = await fetchedSchemas();
    } catch (error) {
      reason = String(error);
    }
  }, FETCH_TIMEOUT);

  test.for(objects)("accept $kind in $file", ({ file: _, ...object }, { skip }) => {
    if (schemas === undefined) return skip(reason);
    const schema = schemas.get(`${object.apiVersion} ${object.kind}`);
    expect(schema?.safeParse(object).error).toBeUndefined();
    expect(schema?.safeParse({ ...object, spec: { misspelt: true } }).success).toBe(false);
  });
});

const noNginx = missing("nginx");

test.skipIf(noNginx !== undefined)(titled("nginx accepts nginx.conf", noNginx), async () => {
  const { path, write, close } = await temporaryDirectory();
  onTestFinished(close);
  const { server, ca } = await testCertificates();
  const text = readFileSync(join(KUBERNETES, "askers/nginx.conf"), "utf8")
    // The names of Services exist in a cluster only.
    .replaceAll(/server \w+\.\w+\.svc:/g, "server 127.0.0.1:")
    .replaceAll("/tmp/", `${path}/`);
  await write("tls.crt", server.cert);
  await write("tls.key", server.key);
  await write("sallyport-ca.crt", ca);
  const args = ["-t", "-p", path, "-c", await write("nginx.conf", text)];
  const { code, err } = await runProgram("nginx", args);
  expect(err).toContain("test is successful");
  expect(code).toBe(0);
});
