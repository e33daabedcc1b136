import { expect, it } from "vitest";
import { FairQuestions } from "../../../src/lib/async/fair-questions.ts";

it("a newcomer takes the place of the client that has most, and nobody takes that of one with few", async () => {
  const questions = new FairQuestions({ atOnce: 2, most: 12, mostOfClient: 5 });
  const signal = AbortSignal.timeout(10_000);
  const { promise: over, resolve: finish } = Promise.withResolvers<void>();
  const ends = new Map<string, string[]>();
  const ask = (client: string): Promise<void> =>
    questions
      .ask(client, signal, () => over)
      .then(
        () => "answered",
        () => "refused",
      )
      .then((end) => void ends.set(client, [...(ends.get(client) ?? []), end]));
  // Three clients fill everything.
  const all = ["a", "b", "c"].flatMap((client) => Array.from({ length: 4 }, () => ask(client)));
  const late = [ask("victim"), ask("victim")];
  await Promise.resolve();
  // One with as many as everybody else gets no place of theirs.
  const greedy = ask("a");
  finish();
  await Promise.all([...all, ...late, greedy]);
  expect(ends.get("victim")).toEqual(["answered", "answered"]);
  const refused = ["a", "b", "c"].flatMap((client) => ends.get(client) ?? []);
  expect(refused.filter((end) => end === "refused")).toHaveLength(3);
});
