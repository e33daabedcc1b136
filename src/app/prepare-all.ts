import type { Change } from "../core/change.ts";

/**
 * Prepares several changes, one after the other, as one. When one of them cannot be prepared, those before it are dropped
 * and its error is thrown: all are put in force, or none.
 */
export async function prepareAll(
  preparations: readonly (() => Change | Promise<Change>)[],
): Promise<Change> {
  const changes: Change[] = [];
  const drop = (): void => {
    for (const change of changes) change.drop();
  };
  try {
    for (const prepare of preparations) changes.push(await prepare());
  } catch (error) {
    drop();
    throw error;
  }
  return {
    async commit() {
      await Promise.all(changes.map((change) => change.commit()));
    },
    drop,
  };
}
