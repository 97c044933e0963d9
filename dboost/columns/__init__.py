"""What is known of each column of the data: what a user says of it, what was summed of it, and its row of one table."""
