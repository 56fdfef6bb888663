"""Host floor: plans, builds, launches, collects and reports. Never imports a framework."""
