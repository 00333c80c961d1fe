// The svcd commands that do the same as the page. Pure.
import { quoted } from "./text.js";

export const deleteCluster = (cluster) => `svcd cluster rm ${quoted(cluster.name)}`;
export const retryCluster = (cluster) => `svcd cluster retry ${quoted(cluster.name)}`;
export const scaleCluster = (cluster, sizes) =>
  `svcd cluster scale ${quoted(cluster.name)}${sizes.map(({ name, count }) => ` ${quoted(name)}=${count}`).join("")}`;
export const why = (id) => `svcd why ${id}`;
export const cancelRun = (id) => `svcd job cancel ${id}`;
export const rerun = (id) => `svcd job rerun ${id}`;
export const followLog = (id) => `svcd job logs ${id} -f`;
export const newCluster = "svcd cluster create NAME --plugin vanilla --workers 3 --image IMAGE --keypair KEYPAIR";
export const newRun = "svcd run FILE --on CLUSTER";
