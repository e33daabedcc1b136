import type { Change } from "../../core/change.ts";

/**
 * Prepares several changes in order, and combines them into one: either all are put in force, or none. If one
 * preparation fails, the changes before it are rolled back.
 *
 * @throws the error of the preparation that failed.
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
