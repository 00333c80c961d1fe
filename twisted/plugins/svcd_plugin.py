"""What `twistd` lists: names only, so that the scan for plugins stays cheap."""

from twisted.application.service import ServiceMaker

svcd = ServiceMaker(
    "svcd", "svcd.tap", "Provision data-processing clusters and run jobs on them.", "svcd"
)
svcd_cloud = ServiceMaker(
    "svcd-cloud", "svcd.tap_cloud", "The embedded cloud of svcd, alone.", "svcd-cloud"
)
