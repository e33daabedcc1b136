/** `promtool` accepts the rules, their tests, and every query of the dashboard. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { alertsIn, ruleGroups, RULES } from "../deploy/rule-files.ts";
import { ROOT } from "../docs/markdown.ts";
import { missing, runProgram } from "../support/program.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const TIMEOUT_MS = 110_000;

const noPromtool = missing("promtool");
describe.skipIf(noPromtool !== undefined)(`promtool ${noPromtool ?? ""}`, () => {
  const promtool = (...args: string[]) => runProgram("promtool", args, "", TIMEOUT_MS);

  it("accepts the rules", async () => {
    const { code, out } = await promtool("check", "rules", join(RULES, "sallyport.rules.yaml"));
    const count = ruleGroups().flatMap(({ rules }) => rules).length;
    expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining(`${count} rules`) });
  });

  it("every alert fires when it should, and only then", async () => {
    const { code, out, err } = await promtool(
      ...["test", "rules", join(RULES, "sallyport.rules.test.yaml")],
    );
    expect({ code, said: code === 0 ? "" : out + err }).toEqual({ code: 0, said: "" });
  });

  it("a rule test fails when its alert no longer fires", async () => {
    await using directory = await temporaryDirectory();
    const ALERT = "SallyportReloadFailed";
    const expr = alertsIn(ruleGroups()).find(({ alert }) => alert === ALERT)?.expr ?? "";
    const text = (name: string): string => readFileSync(join(RULES, name), "utf8");
    const broken = text("sallyport.rules.yaml").replace(`expr: ${expr}`, "expr: vector(0) > 1");
    await directory.write("sallyport.rules.yaml", broken);
    const asked = text("sallyport.rules.test.yaml");
    const head = asked.slice(0, asked.indexOf("  - name: "));
    const [test = ""] = new RegExp(`  - name: ${ALERT}\n(?:    .*\n)*`).exec(asked) ?? [];
    const file = await directory.write("one.test.yaml", head + test);
    const { code, out, err } = await promtool("test", "rules", file);
    expect({ code, told: (out + err).includes(ALERT) }).toEqual({ code: 1, told: true });
  });

  it("accepts every query of the dashboard", async () => {
    await using directory = await temporaryDirectory();
    const queries = dashboardQueries();
    const rules = queries.map((expr, index) => ({ record: `query:${index}`, expr }));
    const groups = [{ name: "dashboard", rules }];
    const file = await directory.write("queries.yaml", JSON.stringify({ groups }));
    const { code, out, err } = await promtool("check", "rules", file);
    expect({ code, out: out + err }).toEqual({
      code: 0,
      out: expect.stringContaining(`${queries.length} rules`),
    });
  });
});

/** Returns the queries with Grafana's variables filled in. */
function dashboardQueries(): string[] {
  const text = readFileSync(join(ROOT, "deploy/grafana/sallyport.json"), "utf8");
  const { panels } = JSON.parse(text) as { panels: { targets?: { expr: string }[] }[] };
  return panels
    .flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
    .map((expr) => expr.replaceAll("$__rate_interval", "4m").replaceAll(/\$\w+/g, ".*"));
}
