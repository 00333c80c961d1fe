"""What needs sockets, processes, PostgreSQL, Hadoop or an OpenStack."""
