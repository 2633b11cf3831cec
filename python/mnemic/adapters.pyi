from mnemic.model.any_text import named_id as named_id
from mnemic.model.any_text import query_text as query_text
from mnemic.model.any_text import storable_text as storable_text
from mnemic.threads.sync_bridge import runs_sync as runs_sync
from mnemic.threads.sync_bridge import sync_method as sync_method
