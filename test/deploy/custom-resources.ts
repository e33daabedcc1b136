/** The published schemas of custom resources, from the modules of the projects that define them. Nothing of them is kept here. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { z } from "zod";
import { runProgram } from "../support/program.ts";

/** Timeout in milliseconds for fetching the modules. */
export const FETCH_TIMEOUT = 300_000;

/** Go modules, and the files in them. */
const MODULES: Readonly<Record<string, readonly string[]>> = {
  "sigs.k8s.io/gateway-api@v1.6.0": ["httproutes", "backendtlspolicies", "referencegrants"].map(
    (name) => `config/crd/experimental/gateway.networking.k8s.io_${name}.yaml`,
  ),
  "github.com/envoyproxy/gateway@v1.9.1": [
    "charts/gateway-helm/charts/crds/crds/generated/gateway.envoyproxy.io_securitypolicies.yaml",
  ],
  "istio.io/api@v1.32.0": ["kubernetes/customresourcedefinitions.gen.yaml"],
  "github.com/traefik/traefik/v3@v3.7.13": [
    "middlewares",
    "ingressroutes",
    "serverstransports",
  ].map((name) => `docs/content/reference/dynamic-configuration/traefik.io_${name}.yaml`),
};

const definition = z.object({
  kind: z.literal("CustomResourceDefinition"),
  spec: z.object({
    group: z.string(),
    names: z.object({ kind: z.string() }),
    versions: z.array(
      z.object({ name: z.string(), schema: z.object({ openAPIV3Schema: z.unknown() }) }),
    ),
  }),
});
const download = z.object({ Dir: z.string() });

/**
 * Returns the schemas by version and kind: `gateway.networking.k8s.io/v1 HTTPRoute`. They are strict, as the API server is with
 * strict validation. Rules in CEL, and alternatives that exclude each other, are left out.
 */
export async function fetchedSchemas(): Promise<Map<string, z.ZodType>> {
  const schemas = new Map<string, z.ZodType>();
  for (const [module, files] of Object.entries(MODULES)) {
    const args = ["mod", "download", "-json", module];
    const { code, out, err } = await runProgram("go", args, "", FETCH_TIMEOUT);
    if (code !== 0) throw new Error(`${module} cannot be had: ${out}${err}`);
    const { Dir: place } = download.parse(JSON.parse(out));
    for (const file of files) {
      for (const document of parseAllDocuments(await readFile(join(place, file), "utf8"))) {
        const { data } = definition.safeParse(document.toJS());
        for (const { name, schema } of data?.spec.versions ?? []) {
          const kind = `${data?.spec.group}/${name} ${data?.spec.names.kind}`;
          schemas.set(kind, z.fromJSONSchema(ofObject(strict(schema.openAPIV3Schema))));
        }
      }
    }
  }
  return schemas;
}

type Schema = Readonly<Record<string, unknown>>;

/** What neither zod nor our check of fields needs. */
const LEFT_OUT = /^(?:x-kubernetes-.*|format|default|description|example|allOf|anyOf|oneOf|not)$/;

function strict(schema: unknown): Schema {
  if (!isSchema(schema)) return {};
  if (schema["x-kubernetes-int-or-string"] === true) {
    return { anyOf: [{ type: "integer" }, { type: "string" }] };
  }
  const { properties, items, additionalProperties: others, ...plain } = schema;
  const kept = Object.entries(plain).filter(([key]) => !LEFT_OUT.test(key));
  const isOpen = schema["x-kubernetes-preserve-unknown-fields"] === true || !isSchema(properties);
  return {
    ...Object.fromEntries(kept),
    ...(isSchema(properties) && {
      properties: Object.fromEntries(
        Object.entries(properties).map(([name, each]) => [name, strict(each)]),
      ),
    }),
    ...(items !== undefined && { items: strict(items) }),
    ...(isSchema(others) && { additionalProperties: strict(others) }),
    ...(!isOpen && !isSchema(others) && { additionalProperties: false }),
  };
}

function ofObject(schema: Schema): z.core.JSONSchema.JSONSchema {
  const { properties } = schema;
  const own = isSchema(properties) ? properties : {};
  const anything = { type: "string" };
  const metadata = { type: "object" };
  return {
    ...schema,
    type: "object",
    properties: { ...own, apiVersion: anything, kind: anything, metadata },
  } as z.core.JSONSchema.JSONSchema;
}

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
