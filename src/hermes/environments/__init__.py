"""Where commands run and files lie: this machine, a sandbox, a container, a host far away."""
