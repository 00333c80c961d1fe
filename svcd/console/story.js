// The story of a cluster, as the daemon tells it: read when its page opens, and again after events that `watch` tells.
import { useEffect, useRef, useState } from "./hooks.js";
import { get, path } from "./api.js";

const PAUSE_MS = 1000; // from one request to the next one
const RETRY_MS = 3000; // after a failure

// The story of the cluster `id` with the steps of `change`, its number or 0 for the newest; null until it is read.
// status: of the cluster; a new one is asked about at once. mark: changes with each event of the cluster; null while no
// story can be read.
export function useStory(id, change, status, mark) {
  const [known, set] = useState(null);
  const own = useRef({ asked: 0 }).current;
  const wanted = `${id} ${change}`;
  own.wanted = wanted;
  useEffect(() => {
    if (mark === null) return undefined;
    let timer = 0;
    let left = false;
    const ask = async () => {
      own.asked = performance.now();
      try {
        const { story } = await get(`${path("clusters", id, "story")}?change=${change}`);
        if (own.wanted === wanted) set({ of: wanted, story });
      } catch (error) {
        if (!left && error.status !== 404) timer = setTimeout(ask, RETRY_MS);
      }
    };
    const isNew = known?.of !== wanted || known.story.status !== status;
    timer = setTimeout(ask, isNew ? 0 : own.asked + PAUSE_MS - performance.now());
    return () => {
      left = true;
      clearTimeout(timer);
    };
  }, [id, change, status, mark]);
  return known?.of === wanted ? known.story : null;
}
