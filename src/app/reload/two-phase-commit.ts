import type { Change } from "../../core/change.ts";

/**
 * Prepares several changes in order, as one. If one of them fails, those before it are rolled back and its error is
 * thrown: either all are put in force, or none.
 */
export async function prepareAll(
  preparations: readonly (() => Change | Promise<Change>)[],
): Promise<Change> {
  const changes: Change[] = [];
  const rollback = (): void => {
    for (const change of changes) change.rollback();
  };
  try {
    for (const prepare of preparations) changes.push(await prepare());
  } catch (error) {
    rollback();
    throw error;
  }
  return {
    async commit() {
      await Promise.all(changes.map((change) => change.commit()));
    },
    rollback,
  };
}
