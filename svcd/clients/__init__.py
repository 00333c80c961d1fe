"""One client for each protocol. Only this room sends requests to cloud, engines and machines."""
