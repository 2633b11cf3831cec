//! The columns of a memory's row: record, attribute columns, filter fields and the binding follow
//! from this list. A test compares it with the fields that Python declares.

/// Call a macro with the columns of a memory's row, in the order of a record.
///
/// A column has its stored name, a sentence, and its kind, which is that of the field in Python.
/// The rest depends on the column:
///
/// - `sum`: its number in the checksum of a row, which never changes. Accesses have none. Numbers
///   28 to 30 belong to fingerprint, idempotency key and the key's fingerprint.
/// - `attribute`: an attribute column of this name holds it. `access` is the same for what
///   accesses change. `record`: the columns read it, and hold it in another form.
/// - `filter`: its name in filters, its [`Field`](crate::filter::Field), and its column.
#[macro_export]
macro_rules! memory_fields {
    ($apply:ident) => {
        $apply! {
            "agent_id" "The agent." name sum 0;
            "id" "The bytes of the UUID." uuid sum 1 attribute id filter "id" Id;
            "created_at" "When it was made." time sum 2 attribute created_at
                filter "created_at" CreatedAt in attributes.created_at;
            "updated_at" "When it was last changed." time sum 3 attribute updated_at
                filter "updated_at" UpdatedAt in attributes.updated_at;
            "content" "The text." content sum 4 record content filter "content" Content;
            "user_id" "The user; nothing for a memory without one." optional_name sum 5 attribute user
                ;
            "project_id" "The project, or nothing." optional_name sum 6 attribute project
                filter "project_id" Project in attributes.project;
            "session_id" "The session, or nothing." optional_name sum 7 attribute session
                filter "session_id" Session in attributes.session;
            "memory_type" "The number of the memory type." type sum 8 attribute kind
                filter "type" Type in attributes.kind;
            "status" "The number of the status." status sum 9 attribute status
                filter "status" Status in attributes.status;
            "importance" "The importance, from 0 to 1." fraction sum 10 attribute importance
                filter "importance" Importance;
            "last_accessed_at" "When it was last read, or nothing." optional_time access last_accessed_at
                filter "last_accessed_at" LastAccessedAt in accesses.last_accessed_at;
            "access_count" "Times it was read." whole access access_count
                filter "access_count" AccessCount in accesses.access_count;
            "forgotten_at" "When it was deleted, or nothing." optional_time sum 13;
            "expires_at" "When it expires, or nothing." optional_time sum 14 attribute expires_at
                filter "expires_at" ExpiresAt in attributes.expires_at;
            "role" "The speaker's role, or nothing." optional_name sum 15 attribute role
                filter "role" Role in attributes.role;
            "speaker" "The speaker, or nothing." optional_name sum 16 attribute speaker
                filter "speaker" Speaker in attributes.speaker;
            "message_id" "The source message, or nothing." optional_name sum 17 attribute message
                filter "message_id" Message in attributes.message;
            "position" "The place in the session, or nothing." optional_whole sum 18 attribute position
                filter "position" Position in attributes.position;
            "category" "The category, or nothing." optional_name sum 19 attribute category
                filter "category" Category in attributes.category;
            "scope" "The scope, or nothing." optional_name sum 20 attribute scope
                filter "scope" Scope in attributes.scope;
            "version" "The version." whole sum 21 attribute version
                filter "version" Version in attributes.version;
            "supersedes" "The UUID that it replaces, or nothing." optional_uuid sum 22;
            "is_sensitive" "Whether it is sensitive." flag sum 23 record sensitive
                filter "sensitive" Sensitive in flags.SENSITIVE;
            "is_encrypted" "Whether the content is encrypted." flag sum 24;
            "type_name" "The name of the type that the content was made from." type_name sum 25;
            "tags" "The tags, a JSON list of texts." tags sum 26 record tags filter "tags" Tags;
            "metadata" "The metadata, a JSON object." metadata sum 27 record metadata;
            "source" "Where the memory came from, or nothing." optional_name sum 31 attribute source
                filter "source" Source in attributes.source;
        }
    };
}
